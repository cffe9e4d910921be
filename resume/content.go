package resume

import (
	"bytes"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// FirstWords is the content of the first message to a model, a JSON array, of a task
// whose model's side is lost: the text and the images of its first row.
func FirstWords(ui [][]byte) []byte {
	var blocks [][]byte
	if len(ui) > 0 && isKind(ui[0], "say", "text") {
		if text := member(ui[0], "text"); text != "" {
			blocks = append(blocks, textBlock("<user_message>\n"+text+"\n</user_message>"))
		}
		images, _ := esjson.Get(ui[0], "images")
		for im := range esjson.Array(images) {
			if s, err := esjson.Unquote(im); err == nil {
				blocks = append(blocks, imageBlock(s))
			}
		}
	}
	if len(blocks) == 0 {
		blocks = [][]byte{textBlock("[TASK RESUMPTION] Resuming task...")}
	}
	return append(append([]byte{'['}, bytes.Join(blocks, []byte{','})...), ']')
}

// imageBlock makes a block of a data URL: "data:image/png;base64,...".
func imageBlock(url string) []byte {
	head, data, _ := strings.Cut(url, ",")
	// Roo splits at every comma and colon and takes the second piece.
	data, _, _ = strings.Cut(data, ",")
	_, media, _ := strings.Cut(head, ":")
	media, _, _ = strings.Cut(media, ":")
	media, _, _ = strings.Cut(media, ";")
	var src, o esjson.Object
	src.String("type", "base64")
	src.String("media_type", media)
	src.String("data", data)
	o.String("type", "image")
	o.Raw("source", src.Bytes())
	return o.Bytes()
}

func textBlock(s string) []byte {
	var o esjson.Object
	o.String("type", "text")
	o.String("text", s)
	return o.Bytes()
}

// member is a string member of a value, "" when there is none.
func member(raw []byte, key string) string {
	if esjson.TypeOf(raw) != esjson.TypeObject {
		return ""
	}
	s, _ := esjson.GetString(raw, key)
	return s
}

func isKind(row []byte, typ, kind string) bool {
	return member(row, "type") == typ && member(row, typ) == kind
}

func isResume(row []byte) bool {
	ask := member(row, "ask")
	return ask == AskTask || ask == AskCompleted
}
