package auth

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/ccojocar/zxcvbn-go/data"
)

// commonPasswords returns the list of the estimator zxcvbn: 7,000 passwords from leaks, in lower case.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	file, err := data.Asset("data/Passwords.json")
	var content struct{ List []string }
	if err == nil {
		err = json.Unmarshal(file, &content)
	}
	if err != nil {
		panic(fmt.Errorf("read the list of common passwords: %w", err)) // it is in the binary
	}
	common := make(map[string]bool, len(content.List))
	for _, password := range content.List {
		common[password] = true
	}
	return common
})

// walks are the rows of keyboards and the alphabet, in both directions.
var walks = func() []string {
	all := []string{"abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm", "qazwsxedcrfvtgbyhnujmikolp"}
	for _, walk := range slices.Clone(all) {
		back := []byte(walk)
		slices.Reverse(back)
		all = append(all, string(back))
	}
	return all
}()

// plainLetters replaces characters that stand for letters.
var plainLetters = strings.NewReplacer("0", "o", "1", "l", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

const (
	// maxCommonWords is how many passwords of the list a common password consists of: more are a passphrase.
	maxCommonWords = 2
	// maxCommonLetters limits the time.
	maxCommonLetters = 64
)

// commonPassword reports whether a password is one of those that are tried first. Digits and punctuation, such as
// years, do not count, and characters may stand for letters: the rest is empty, or consists of at most two passwords
// of the list, with rows of the keyboard, repeated letters, the name of the product and words of the user's address.
func commonPassword(password, email string) bool {
	lower := strings.ToLower(password)
	own := append([]string{"dmarcd", "dmarc"}, strings.FieldsFunc(strings.ToLower(email), func(r rune) bool { return !unicode.IsLetter(r) })...)
	within := strings.TrimFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) })
	return commonLetters(lettersOf(lower), own) || commonLetters(lettersOf(plainLetters.Replace(within)), own)
}

func lettersOf(text string) []rune {
	letters := slices.DeleteFunc([]rune(text), func(r rune) bool { return !unicode.IsLetter(r) })
	for period := 1; period <= len(letters)/2; period++ { // of what is repeated, once
		if len(letters)%period == 0 && slices.Equal(letters[period:], letters[:len(letters)-period]) {
			return letters[:period]
		}
	}
	return letters
}

// commonLetters reports whether letters can be divided into what is tried first.
func commonLetters(letters []rune, own []string) bool {
	if len(letters) > maxCommonLetters {
		return false
	}
	if len(letters) < 3 {
		return true
	}
	const no = maxCommonWords + 1
	words := make([]int, len(letters)+1) // of the list, up to there
	for end := 1; end <= len(letters); end++ {
		words[end] = no
		for begin := range end {
			words[end] = min(words[end], words[begin]+listWords(string(letters[begin:end]), own))
		}
	}
	return words[len(letters)] <= maxCommonWords
}

// listWords returns how many passwords of the list a part is: 0 for what counts as none, 1, or too many.
func listWords(part string, own []string) int {
	switch {
	case len(part) >= 3 && (strings.Trim(part, part[:1]) == "" || slices.ContainsFunc(walks, func(walk string) bool { return strings.Contains(walk, part) })):
		return 0
	case slices.Contains(own, part):
		return 0
	case len(part) >= 3 && commonPasswords()[part]:
		return 1
	}
	return maxCommonWords + 1
}
