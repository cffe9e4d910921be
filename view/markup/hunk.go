package markup

import (
	"html"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/view"
)

// lineBytes bounds the shown part of one line of a difference.
const lineBytes = 4 << 10

// HunkLines renders the lines of a hunk of a unified difference, each with its number in the older or the newer text.
// old and made are the numbers of the hunk's first lines there. room bounds the shown bytes, and is reduced by their
// number; left is the number of omitted bytes.
func (t *Setter) HunkLines(hunk string, old, made int, room *int) (set string, left int64) {
	var out strings.Builder
	for line := range strings.Lines(hunk) {
		if *room <= 0 {
			left += int64(len(line))
			continue
		}
		line = strings.TrimSuffix(line, "\n")
		cut := 0
		if most := min(lineBytes, *room); len(line) > most {
			cut = len(line) - most
			line = strings.ToValidUTF8(line[:most], "")
		}
		*room -= len(line) + 1
		class, number := string(view.DiffStyle(line)), 0
		out.WriteString(`<div class="` + class + `"`)
		switch {
		case strings.HasPrefix(line, "+"):
			out.WriteString(` data-new="` + strconv.Itoa(made) + `"`)
			number, made = made, made+1
		case strings.HasPrefix(line, "-"):
			out.WriteString(` data-old="` + strconv.Itoa(old) + `"`)
			number, old = old, old+1
		case strings.HasPrefix(line, " "):
			out.WriteString(` data-new="` + strconv.Itoa(made) + `"`)
			number, old, made = made, old+1, made+1
		}
		out.WriteString(">")
		if number > 0 { // the remark about a missing line break at the end has no number
			out.WriteString(`<span class="ln" data-n="` + strconv.Itoa(number) + `"></span>`)
		}
		out.WriteString("<code>" + html.EscapeString(strings.ReplaceAll(t.opt.Clean(line), "\n", "⏎")) + "</code>")
		if cut > 0 {
			out.WriteString(`<span class="cut">… ` + api.SizeText(int64(cut)) + ` more</span>`)
		}
		out.WriteString("</div>")
	}
	return out.String(), left
}
