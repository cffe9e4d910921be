package mode

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// matchTime bounds the match of one name. Patterns that look around may take time
// that grows exponentially with the name, and name and pattern may come from people
// who wish us no good.
const matchTime = 200 * time.Millisecond

// pattern is a JavaScript pattern without flags.
type pattern struct {
	plain *regexp.Regexp  // where Go's engine means the same: it takes linear time
	full  *regexp2.Regexp // else
}

// common is what both engines take for the same.
var common = regexp.MustCompile(`^(?:[A-Za-z0-9_/ .^$|*+?)\[\]-]|\((?:\?:)?|\\[dwDW./\\()\[\]^$|*+?-])*$`)

// notJavaScript is what the full engine takes although JavaScript does not.
var notJavaScript = regexp.MustCompile(`\(\?(?:[^:=!<]|<[^=!A-Za-z_$])`)

func compile(text string) (*pattern, error) {
	full, err := regexp2.Compile(text, regexp2.ECMAScript)
	if err == nil && notJavaScript.MatchString(strings.ReplaceAll(text, `\\`, "")) {
		err = fmt.Errorf("a group begins with (? and nothing that JavaScript knows")
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no pattern: %w", text, err)
	}
	p := &pattern{full: full}
	full.MatchTimeout = matchTime
	// To JavaScript a class may be empty: [] is nothing, and [^] anything. To Go the bracket
	// behind it is the first of what stands in it.
	if common.MatchString(text) && !strings.Contains(text, "[]") && !strings.Contains(text, "[^]") {
		if plain, err := regexp.Compile(text); err == nil {
			p.plain = plain
		}
	}
	return p, nil
}

// match reports whether the pattern is found in s. What cannot be decided in time is
// not found: the pattern says what is allowed.
func (p *pattern) match(s string) bool {
	if p.plain != nil {
		return p.plain.MatchString(s)
	}
	ok, err := p.full.MatchString(s)
	return ok && err == nil
}
