// Package lazyregexp compiles regular expressions when they are first used. Roost has about a hundred, and a command
// uses few of them: to compile them all took a quarter of the time in which a command starts.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that gives the compiled expression. It compiles the expression at its first call, and panics
// when that fails, as regexp.MustCompile does.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
