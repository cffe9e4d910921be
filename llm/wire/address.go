package wire

import (
	"errors"
	"strings"
)

// CheckAddress refuses an address that holds a user's name or password: addresses are kept and
// shown in clear.
func CheckAddress(base string) error {
	if _, behind, ok := strings.Cut(base, "//"); ok {
		base = behind
	}
	if host := strings.IndexAny(base, "/?#"); host >= 0 {
		base = base[:host]
	}
	if !strings.Contains(base, "@") {
		return nil
	}
	return errors.New("the address holds a name or password in front of its host, which would be kept and shown in clear: leave it out")
}
