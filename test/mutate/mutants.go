package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change of the code.
type mutant struct {
	id       int    // from 1
	file     string // from the root of the module
	line     int
	function string
	from, to string // the expression
}

// String returns the mutant in the form of an entry of the list of known ones.
func (m mutant) String() string {
	return fmt.Sprintf("`%s` %s: `%s` → `%s`", m.file, m.function, m.from, m.to)
}

// source is a package with all its mutants.
type source struct {
	root, folder string // the folder of the module, and that of the package in it
	name         string // of the package
	files        map[string][]byte
	mutants      []mutant
}

// load parses a package of the module in the current folder and finds its mutants.
func load(ctx context.Context, folder string) (*source, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	files, exports, err := list(ctx, folder)
	if err != nil {
		return nil, err
	}
	p := &source{root: root, folder: path.Clean(filepath.ToSlash(folder)), files: map[string][]byte{}}
	positions := token.NewFileSet()
	var trees []*ast.File
	texts := map[*ast.File][]byte{}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(positions, path.Join(p.folder, name), text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		trees, texts[tree], p.name = append(trees, tree), text, tree.Name.Name
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	if _, err := config.Check(p.folder, positions, trees, info); err != nil {
		return nil, err
	}
	for _, tree := range trees {
		w := &rewriter{p: p, positions: positions, info: info, text: texts[tree], base: positions.File(tree.Pos()).Base()}
		name := positions.File(tree.Pos()).Name()
		for _, declaration := range tree.Decls {
			w.function = "var"
			if fn, ok := declaration.(*ast.FuncDecl); ok {
				w.function = fn.Name.Name
			}
			ast.Inspect(declaration, w.visit)
		}
		p.files[name] = w.apply()
	}
	return p, nil
}

// list returns the Go files of a package, and for every package below it the file
// with its export data.
func list(ctx context.Context, folder string) (files []string, exports map[string]string, err error) {
	command := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles,DepOnly", "./"+folder)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	exports = map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(printed)); ; {
		var p struct {
			ImportPath, Export string
			GoFiles            []string
			DepOnly            bool
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return files, exports, nil
		} else if err != nil {
			return nil, nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			files = p.GoFiles
		}
	}
}

// edit replaces length bytes at an offset of a file.
type edit struct {
	offset, length int
	text           string
}

// rewriter writes the mutants of one file into its text.
type rewriter struct {
	p         *source
	positions *token.FileSet
	info      *types.Info
	text      []byte
	base      int // position of the first byte
	function  string

	open    []ast.Node // the nodes around the current one
	closing map[ast.Node]edit
	edits   []edit
}

// visit is called by ast.Inspect, with nil at the end of a node. Text before a node
// is added on the way in and text behind it on the way out, so that nested mutants
// nest in the text.
func (w *rewriter) visit(n ast.Node) bool {
	if n == nil {
		last := len(w.open) - 1
		if e, ok := w.closing[w.open[last]]; ok {
			w.edits = append(w.edits, e)
		}
		w.open = w.open[:last]
		return false
	}
	w.open = append(w.open, n)
	switch n := n.(type) {
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT && w.mutable(n) {
			w.negate(n, w.source(n.X))
		}
	case *ast.IfStmt:
		w.condition(n.Cond)
	case *ast.ForStmt:
		w.condition(n.Cond)
	case *ast.IncDecStmt:
		opposite := map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}[n.Tok]
		id := w.add(n, w.source(n.X)+n.Tok.String(), w.source(n.X)+opposite.String())
		sign := map[token.Token]string{token.INC: "+=", token.DEC: "-="}[n.Tok]
		w.replace(n.TokPos, 2, fmt.Sprintf(" %s mutantOne(%d, %s)", sign, id, w.source(n.X)))
	case *ast.AssignStmt:
		w.assign(n)
	}
	return true
}

func (w *rewriter) binary(n *ast.BinaryExpr) {
	if !w.mutable(n) {
		return
	}
	x, y := w.source(n.X), w.source(n.Y)
	with := func(op token.Token) string { return fmt.Sprintf("%s %s %s", x, op, y) }
	switch n.Op {
	case token.EQL:
		w.negate(n, with(token.NEQ))
	case token.NEQ:
		w.negate(n, with(token.EQL))
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		o := orders[n.Op]
		id := w.add(n, with(n.Op), with(o.negated))
		w.add(n, with(n.Op), with(o.boundary)) // has the next id
		w.call(n, o.helper, id)
	case token.ADD, token.SUB:
		if !numeric(w.info.TypeOf(n)) {
			return
		}
		helper, opposite := "mutantAdd", token.SUB
		if n.Op == token.SUB {
			helper, opposite = "mutantSub", token.ADD
		}
		w.call(n, helper, w.add(n, with(n.Op), with(opposite)))
	case token.LAND, token.LOR:
		opposite := token.LOR
		if n.Op == token.LOR {
			opposite = token.LAND
		}
		id := w.add(n, with(n.Op), with(opposite))
		// De Morgan: a || b is !(!a && !b).
		w.replace(n.Pos(), 0, "(((")
		w.replace(n.OpPos, 2, fmt.Sprintf(") != mutantOn(%d) %s (", id, n.Op))
		w.after(n, fmt.Sprintf(") != mutantOn(%d)) != mutantOn(%d))", id, id))
		w.condition(n.X)
		w.condition(n.Y)
	}
}

// order describes the mutants of a comparison.
type order struct {
	helper            string
	negated, boundary token.Token
}

var orders = map[token.Token]order{
	token.LSS: {"mutantLess", token.GEQ, token.LEQ},
	token.LEQ: {"mutantLessEqual", token.GTR, token.LSS},
	token.GTR: {"mutantMore", token.LEQ, token.GEQ},
	token.GEQ: {"mutantMoreEqual", token.LSS, token.GTR},
}

// condition negates a condition that has no mutant of its own.
func (w *rewriter) condition(x ast.Expr) {
	switch x := x.(type) {
	case nil, *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr:
	default:
		if w.mutable(x) {
			w.negate(x, "!"+w.source(x))
		}
	}
}

func (w *rewriter) assign(n *ast.AssignStmt) {
	if n.Tok != token.ADD_ASSIGN && n.Tok != token.SUB_ASSIGN || !numeric(w.info.TypeOf(n.Lhs[0])) {
		return
	}
	opposite := token.SUB_ASSIGN
	if n.Tok == token.SUB_ASSIGN {
		opposite = token.ADD_ASSIGN
	}
	x, y := w.source(n.Lhs[0]), n.Rhs[0]
	id := w.add(n, w.source(n), fmt.Sprintf("%s %s %s", x, opposite, w.source(y)))
	w.replace(y.Pos(), 0, fmt.Sprintf("mutantSign(%d, %s, ", id, x))
	w.after(y, ")")
}

// negate compares a condition with the switch of its mutant.
func (w *rewriter) negate(n ast.Expr, to string) {
	id := w.add(n, w.source(n), to)
	w.replace(n.Pos(), 0, "((")
	w.after(n, fmt.Sprintf(") != mutantOn(%d))", id))
}

// call makes a call of a binary expression.
func (w *rewriter) call(n *ast.BinaryExpr, helper string, id int) {
	w.replace(n.Pos(), 0, fmt.Sprintf("%s(%d, ", helper, id))
	w.replace(n.OpPos, len(n.Op.String()), ",")
	w.after(n, ")")
}

// mutable reports whether an expression is computed at run time, by operators of
// ordinary types.
func (w *rewriter) mutable(n ast.Expr) bool {
	if w.info.Types[n].Value != nil {
		return false
	}
	b, ok := n.(*ast.BinaryExpr)
	if !ok {
		return true
	}
	for _, x := range []ast.Expr{b.X, b.Y} {
		if _, generic := w.info.TypeOf(x).(*types.TypeParam); generic || w.shiftsConstant(x) {
			return false
		}
	}
	return true
}

// shiftsConstant reports whether an operand shifts a constant: its type depends on the
// context, which is another one in the call of a helper.
func (w *rewriter) shiftsConstant(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return w.shiftsConstant(x.X)
	case *ast.BinaryExpr:
		shift := x.Op == token.SHL || x.Op == token.SHR
		return shift && w.info.Types[x].Value == nil && w.info.Types[x.X].Value != nil || w.shiftsConstant(x.X) || w.shiftsConstant(x.Y)
	}
	return false
}

func numeric(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsInteger|types.IsFloat) != 0
}

// add adds a mutant and returns its id.
func (w *rewriter) add(n ast.Node, from, to string) int {
	at := w.positions.Position(n.Pos())
	m := mutant{id: len(w.p.mutants) + 1, file: at.Filename, line: at.Line, function: w.function, from: from, to: to}
	w.p.mutants = append(w.p.mutants, m)
	return m.id
}

// source returns the text of a node on one line.
func (w *rewriter) source(n ast.Node) string {
	text := w.text[int(n.Pos())-w.base : int(n.End())-w.base]
	return strings.Join(strings.Fields(string(text)), " ")
}

func (w *rewriter) replace(at token.Pos, length int, text string) {
	w.edits = append(w.edits, edit{int(at) - w.base, length, text})
}

// after adds text behind a node, around all that is added behind its parts. Of two
// texts the later one is the inner one.
func (w *rewriter) after(n ast.Node, text string) {
	if w.closing == nil {
		w.closing = map[ast.Node]edit{}
	}
	w.closing[n] = edit{int(n.End()) - w.base, 0, text + w.closing[n].text}
}

// apply returns the text with all edits.
func (w *rewriter) apply() []byte {
	// What is added behind an operand is before the operator that follows at once.
	slices.SortStableFunc(w.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.length, b.length))
	})
	var out bytes.Buffer
	end := 0
	for _, e := range w.edits {
		out.Write(w.text[end:e.offset])
		out.WriteString(e.text)
		end = e.offset + e.length
	}
	out.Write(w.text[end:])
	return out.Bytes()
}
