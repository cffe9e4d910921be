package export

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// MarkdownName is the file name that Roo proposes for a task of that time, in Unix
// milliseconds, as clocks at loc show it: roo_task_apr-14-2026_8-53-20-pm.md.
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

// nameMost is how long a name may be, in bytes, so that an ending and a number fit
// behind it in the 255 that file systems take.
const nameMost = 255 - len(".archive~9999")

// FileName makes an id that another program chose fit to name a file anywhere: what is
// no letter, digit, dot, dash or underscore is spelled %XX, and so is a leading dot. A
// name that is too long for that is cut; ids that begin alike stay apart by a digest.
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
