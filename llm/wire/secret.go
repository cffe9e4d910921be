package wire

import (
	"regexp"
	"strings"

	"github.com/roost-dev/roost/llm"
)

// keyShape matches what looks like an API key of the known providers.
var keyShape = regexp.MustCompile(`\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{12,}|\bAIza[A-Za-z0-9_\-]{20,}`)

// Redact removes the key, and anything that looks like one, from a text that may be
// shown or stored: proxies echo headers and keys in their error pages. In a text that
// Shorten cut, it also removes the beginning of a key at the cut.
func Redact(text, key string) string {
	if len(key) >= 4 {
		text = strings.ReplaceAll(text, key, "[key]")
		if body, cut := strings.CutSuffix(text, ellipsis); cut {
			for n := min(len(key)-1, len(body)); n >= 4; n-- {
				if strings.HasSuffix(body, key[:n]) {
					text = body[:len(body)-n] + "[key]" + ellipsis
					break
				}
			}
		}
	}
	return keyShape.ReplaceAllString(text, "[key]")
}

// ellipsis marks where Shorten cut.
const ellipsis = "..."

// RedactError cleans an error's message and drops its cause when the cause would
// show the key again.
func RedactError(err *llm.Error, key string) *llm.Error {
	err.Message = Redact(err.Message, key)
	if err.Err != nil {
		if t := err.Err.Error(); Redact(t, key) != t {
			err.Err = nil
		}
	}
	return err
}

// Shorten cuts a provider's error page to a length that fits a terminal.
func Shorten(text string, max int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= max {
		return text
	}
	cut := max
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + ellipsis
}
