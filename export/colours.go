package export

import (
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// The colours of code, on a light and on a dark page. They are our own: importing the library's styles would cost time
// at every start of the program, for every command.
var (
	onLight = sync.OnceValue(func() *chroma.Style {
		return colours("light", "#1f2328", "#59636e", "#0a3069", "#cf222e", "#8250df", "#0550ae", "#116329", "#82071e")
	})
	onDark = sync.OnceValue(func() *chroma.Style {
		return colours("dark", "#e6edf3", "#9198a1", "#a5d6ff", "#ff7b72", "#d2a8ff", "#79c0ff", "#aff5b4", "#ffdcd7")
	})
)

func colours(name, text, comment, str, keyword, function, number, added, removed string) *chroma.Style {
	return chroma.MustNewStyle(name, chroma.StyleEntries{
		chroma.Text:            text,
		chroma.Comment:         "italic " + comment,
		chroma.CommentPreproc:  keyword,
		chroma.String:          str,
		chroma.Keyword:         keyword,
		chroma.Operator:        keyword,
		chroma.NameFunction:    function,
		chroma.NameClass:       function,
		chroma.NameTag:         added,
		chroma.NameAttribute:   number,
		chroma.NameBuiltin:     number,
		chroma.NameConstant:    number,
		chroma.Number:          number,
		chroma.GenericInserted: added,
		chroma.GenericDeleted:  removed,
		chroma.GenericHeading:  "bold " + number,
	})
}
