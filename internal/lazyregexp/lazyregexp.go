// Package lazyregexp compiles regular expressions when they are first used. Roost has about a hundred, and a command
// uses few of them: compiling all took a quarter of a command's start time.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. Its first call compiles the expression, and panics
// when that fails, as regexp.MustCompile does.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
