package mode

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// matchTime bounds the match of one name. Patterns with look-around may take time that grows exponentially with the
// name, and name and pattern may come from an attacker.
const matchTime = 200 * time.Millisecond

// pattern is a JavaScript pattern without flags.
type pattern struct {
	plain *regexp.Regexp  // where Go's engine gives the same results: it takes linear time
	full  *regexp2.Regexp // otherwise
}

// common matches patterns that both engines read alike.
var common = regexp.MustCompile(`^(?:[A-Za-z0-9_/ .^$|*+?)\[\]-]|\((?:\?:)?|\\[dwDW./\\()\[\]^$|*+?-])*$`)

// notJavaScript matches what the full engine accepts although JavaScript does not.
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
	// In JavaScript a class may be empty: [] matches nothing, and [^] anything. In Go the bracket after it is the first
	// character of the class.
	if common.MatchString(text) && !strings.Contains(text, "[]") && !strings.Contains(text, "[^]") {
		if plain, err := regexp.Compile(text); err == nil {
			p.plain = plain
		}
	}
	return p, nil
}

// match reports whether s matches the pattern. A match that is not decided in time counts as none: the pattern grants
// permission.
func (p *pattern) match(s string) bool {
	if p.plain != nil {
		return p.plain.MatchString(s)
	}
	ok, err := p.full.MatchString(s)
	return ok && err == nil
}
