// Package tenantsql reports whether a statement can be answered by the server that has the
// rows of one team: whether team_id is bound on each table that has it, in every part of
// the statement. PostgreSQL's own parser reads the statement.
package tenantsql

import (
	"fmt"
	"maps"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Schema says by which column a table names the team: team_id, and id in teams. Tables
// without a team are not in it.
type Schema map[string]string

// ReadSchema reads the tables that some DDL creates.
func ReadSchema(ddl string) (Schema, error) {
	parsed, err := pg.Parse(ddl)
	if err != nil {
		return nil, err
	}
	schema := Schema{"teams": "id"}
	for _, statement := range parsed.GetStmts() {
		table := statement.GetStmt().GetCreateStmt()
		for _, element := range table.GetTableElts() {
			if element.GetColumnDef().GetColname() == "team_id" {
				schema[table.GetRelation().GetRelname()] = "team_id"
			}
		}
	}
	return schema, nil
}

// View is whose statement it is.
type View int

const (
	// Tenant is the view of one team: a parameter binds each table. A subquery is bound by
	// itself: Citus does not always see that it is of the team of the query around it.
	Tenant View = iota
	// System is the view of all teams: the tables of a query are of one team each, so
	// that joins need no other server.
	System
)

// Check returns what is wrong with a statement: a table whose team is not bound, each with
// the reason, or nothing.
func (s Schema) Check(query string, view View) ([]string, error) {
	parsed, err := pg.Parse(query)
	if err != nil {
		return nil, err
	}
	c := &checker{schema: s, view: view}
	for _, statement := range parsed.GetStmts() {
		c.statement(statement.GetStmt())
	}
	return c.problems, nil
}

type checker struct {
	schema   Schema
	view     View
	problems []string
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// scope is one level of a query: what is in its FROM.
type scope struct {
	outer  *scope
	schema Schema
	tables map[string]string // names of tables by their aliases
	order  []string          // the aliases, from left to right
	bound  map[string]bool   // aliases whose team is bound
}

func (c *checker) scope(outer *scope) *scope {
	if c.view == Tenant {
		outer = nil
	}
	return &scope{outer: outer, schema: c.schema, tables: make(map[string]string), bound: make(map[string]bool)}
}

// condition is what a query asks for at its top level, joined by AND. Only the aliases in
// binds are narrowed by it, all if it is nil: the ON of a LEFT JOIN leaves the left side
// as it is.
type condition struct {
	node  *pg.Node
	binds []string
}

func (c *checker) statement(node *pg.Node) {
	switch {
	case node.GetSelectStmt() != nil:
		c.selects(node.GetSelectStmt(), nil)
	case node.GetInsertStmt() != nil:
		c.insert(node.GetInsertStmt())
	case node.GetUpdateStmt() != nil:
		u := node.GetUpdateStmt()
		c.change(u.GetRelation(), u.GetFromClause(), u.GetWhereClause(), u.ProtoReflect())
	case node.GetDeleteStmt() != nil:
		d := node.GetDeleteStmt()
		c.change(d.GetRelation(), d.GetUsingClause(), d.GetWhereClause(), d.ProtoReflect())
	case node.GetCopyStmt() != nil:
		c.columns(node.GetCopyStmt().GetRelation().GetRelname(), names(node.GetCopyStmt().GetAttlist()))
	}
}

// selects checks a SELECT, which may be correlated with the scope outside of it.
func (c *checker) selects(s *pg.SelectStmt, outer *scope) {
	if s == nil {
		return
	}
	if s.GetOp() != pg.SetOperation_SETOP_NONE {
		c.selects(s.GetLarg(), outer)
		c.selects(s.GetRarg(), outer)
		return
	}
	in := c.scope(outer)
	conditions := c.from(in, s.GetFromClause())
	conditions = append(conditions, condition{node: s.GetWhereClause()})
	c.bind(in, conditions)
	c.inside(s.ProtoReflect(), in)
}

// change checks an UPDATE or DELETE.
func (c *checker) change(table *pg.RangeVar, from []*pg.Node, where *pg.Node, whole protoreflect.Message) {
	in := c.scope(nil)
	in.add(table)
	conditions := append(c.from(in, from), condition{node: where})
	c.bind(in, conditions)
	c.inside(whole, in)
}

// columns checks that rows are inserted with their team, and returns its place.
func (c *checker) columns(table string, columns []string) int {
	if c.schema[table] != "team_id" {
		return -1
	}
	at := slices.Index(columns, "team_id")
	if at < 0 {
		c.problem("%s: a row is inserted without team_id", table)
	}
	return at
}

func (c *checker) insert(i *pg.InsertStmt) {
	table := i.GetRelation().GetRelname()
	at := c.columns(table, names(i.GetCols()))
	in := c.scope(nil)
	in.add(i.GetRelation())
	in.bound[alias(i.GetRelation())] = true // the row that is inserted
	in.tables["excluded"], in.bound["excluded"] = table, true
	source := i.GetSelectStmt().GetSelectStmt()
	if at >= 0 && c.view == Tenant {
		for _, row := range source.GetValuesLists() {
			if row.GetList().GetItems()[at].GetParamRef() == nil {
				c.problem("%s: team_id of an inserted row is not a parameter", table)
			}
		}
		if targets := source.GetTargetList(); len(targets) > at {
			value := targets[at].GetResTarget().GetVal()
			// The tables that it selects from are bound: their team_id is as good as the parameter.
			if _, column := reference(value); value.GetParamRef() == nil && column != "team_id" {
				c.problem("%s: team_id of a selected row is not that of the team", table)
			}
		}
	}
	if infer := i.GetOnConflictClause().GetInfer(); at >= 0 && infer != nil {
		var key []string
		for _, element := range infer.GetIndexElems() {
			key = append(key, element.GetIndexElem().GetName())
		}
		if !slices.Contains(key, "team_id") {
			c.problem("%s: the key %q of a conflict has no team_id", table, key)
		}
	}
	c.selects(source, nil)
	if conflict := i.GetOnConflictClause(); conflict != nil {
		c.inside(conflict.ProtoReflect(), in)
	}
	for _, returned := range i.GetReturningList() {
		c.inside(returned.ProtoReflect(), in)
	}
}

// from adds what a FROM has to the scope, and returns the conditions of its joins.
func (c *checker) from(in *scope, items []*pg.Node) []condition {
	var conditions []condition
	for _, item := range items {
		switch {
		case item.GetRangeVar() != nil:
			in.add(item.GetRangeVar())
		case item.GetRangeSubselect() != nil:
			c.selects(item.GetRangeSubselect().GetSubquery().GetSelectStmt(), in.outer)
		case item.GetJoinExpr() != nil:
			join := item.GetJoinExpr()
			conditions = append(conditions, c.from(in, []*pg.Node{join.GetLarg()})...)
			before := maps.Clone(in.tables)
			conditions = append(conditions, c.from(in, []*pg.Node{join.GetRarg()})...)
			on := condition{node: join.GetQuals()}
			switch join.GetJointype() {
			case pg.JoinType_JOIN_INNER:
			case pg.JoinType_JOIN_LEFT:
				on.binds = []string{}
				for alias := range in.tables {
					if _, left := before[alias]; !left {
						on.binds = append(on.binds, alias)
					}
				}
			default:
				c.problem("a join that this check does not know: %s", join.GetJointype())
			}
			conditions = append(conditions, on)
		}
	}
	return conditions
}

// bind finds the tables whose team the conditions bind, and reports the others.
func (c *checker) bind(in *scope, conditions []condition) {
	var equal []condition
	for _, condition := range conditions {
		equal = append(equal, equalities(condition)...)
	}
	spread := func() {
		for changed := true; changed; {
			changed = false
			for _, e := range equal {
				left, right := e.node.GetAExpr().GetLexpr(), e.node.GetAExpr().GetRexpr()
				for _, sides := range [][2]*pg.Node{{left, right}, {right, left}} {
					alias, ok := in.teamColumn(sides[0])
					if !ok || in.bound[alias] || e.binds != nil && !slices.Contains(e.binds, alias) {
						continue
					}
					if in.isBound(sides[1]) {
						in.bound[alias], changed = true, true
					}
				}
			}
		}
	}
	spread()
	for _, alias := range in.order {
		if c.schema[in.tables[alias]] == "" || in.bound[alias] {
			continue
		}
		if c.view == System && len(in.bound) == 0 {
			in.bound[alias] = true // any team; the others have to be of the same
			spread()
			continue
		}
		c.problem("%s: its team is not bound", alias)
		in.bound[alias] = true // once is enough
	}
}

// equalities returns the equations of a condition that hold for every row.
func equalities(c condition) []condition {
	if both := c.node.GetBoolExpr(); both.GetBoolop() == pg.BoolExprType_AND_EXPR {
		var all []condition
		for _, arg := range both.GetArgs() {
			all = append(all, equalities(condition{arg, c.binds})...)
		}
		return all
	}
	e := c.node.GetAExpr()
	if e.GetKind() == pg.A_Expr_Kind_AEXPR_OP && len(e.GetName()) == 1 && e.GetName()[0].GetString_().GetSval() == "=" {
		return []condition{c}
	}
	return nil
}

// inside checks the subqueries in expressions. Those in FROM are checked with it.
func (c *checker) inside(m protoreflect.Message, in *scope) {
	each(m, func(child protoreflect.Message) {
		switch node := child.Interface().(type) {
		case *pg.SubLink:
			c.selects(node.GetSubselect().GetSelectStmt(), in)
			if node.GetTestexpr() != nil {
				c.inside(node.GetTestexpr().ProtoReflect(), in)
			}
		case *pg.RangeSubselect: // see from
		case *pg.CommonTableExpr:
			c.selects(node.GetCtequery().GetSelectStmt(), in.outer)
		default:
			c.inside(child, in)
		}
	})
}

// each calls f with the messages that a message has.
func each(m protoreflect.Message, f func(protoreflect.Message)) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				f(value.List().Get(i).Message())
			}
		default:
			f(value.Message())
		}
		return true
	})
}

func (s *scope) add(table *pg.RangeVar) {
	s.tables[alias(table)] = table.GetRelname()
	s.order = append(s.order, alias(table))
}

func alias(table *pg.RangeVar) string {
	if name := table.GetAlias().GetAliasname(); name != "" {
		return name
	}
	return table.GetRelname()
}

// teamColumn returns the table of this scope whose team a node names.
func (s *scope) teamColumn(node *pg.Node) (alias string, ok bool) {
	table, column := reference(node)
	if table != "" {
		name, here := s.tables[table]
		return table, here && column == s.schema[name]
	}
	var found []string
	for alias, name := range s.tables {
		if column != "" && s.schema[name] == column && (column == "team_id" || len(s.tables) == 1) {
			found = append(found, alias)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// isBound reports whether a node is a parameter, or the team of a table that is bound,
// here or outside.
func (s *scope) isBound(node *pg.Node) bool {
	if cast := node.GetTypeCast(); cast != nil {
		node = cast.GetArg()
	}
	if node.GetParamRef() != nil {
		return true
	}
	for in := s; in != nil; in = in.outer {
		if alias, ok := in.teamColumn(node); ok {
			return in.bound[alias]
		}
	}
	return false
}

// reference returns the table and the column that a node names, "" for none.
func reference(node *pg.Node) (table, column string) {
	fields := names(node.GetColumnRef().GetFields())
	switch len(fields) {
	case 1:
		return "", fields[0]
	case 2:
		return fields[0], fields[1]
	}
	return "", ""
}

// names returns the texts of nodes: names of columns, or parts of a name.
func names(nodes []*pg.Node) []string {
	var all []string
	for _, node := range nodes {
		switch {
		case node.GetResTarget() != nil:
			all = append(all, node.GetResTarget().GetName())
		case node.GetString_() != nil:
			all = append(all, node.GetString_().GetSval())
		}
	}
	return all
}
