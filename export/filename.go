package export

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// MarkdownName is the file name that Roo proposes for a task with that time, in Unix milliseconds, in the zone loc:
// roo_task_apr-14-2026_8-53-20-pm.md.
func MarkdownName(ts int64, loc *time.Location) string {
	t := time.UnixMilli(ts).In(loc)
	half, hour := "am", t.Hour()
	if hour >= 12 {
		half = "pm"
	}
	if hour %= 12; hour == 0 {
		hour = 12
	}
	return fmt.Sprintf("roo_task_%s-%d-%d_%d-%02d-%02d-%s.md",
		strings.ToLower(t.Month().String()[:3]), t.Day(), t.Year(), hour, t.Minute(), t.Second(), half)
}

// nameMost bounds a name, in bytes, so that an extension and a number fit behind it in the 255 bytes that file systems
// take.
const nameMost = 255 - len(".archive~9999")

// FileName turns an id that another program chose into a file name for every system: it writes a character other than
// a letter, digit, dot, dash or underscore as %XX, and a leading dot too. It cuts a name that is too long and adds a
// digest, so that ids with the same beginning differ.
func FileName(id string) string {
	var out strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	name := out.String()
	if len(name) <= nameMost {
		return name
	}
	sum := sha256.Sum256([]byte(id))
	return name[:nameMost-9] + "~" + hex.EncodeToString(sum[:4])
}
