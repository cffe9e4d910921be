package view

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
)

// object returns text as bytes, and whether it is a JSON object: the JSON in messages may be damaged.
func object(text string) ([]byte, bool) {
	raw := []byte(text)
	return raw, isObject(raw)
}

func isObject(raw []byte) bool { return esjson.TypeOf(raw) == esjson.TypeObject && esjson.Valid(raw) }

// inner returns a member that is an object; nil if there is none.
func inner(raw []byte, key string) []byte {
	if val, _ := esjson.Get(raw, key); esjson.TypeOf(val) == esjson.TypeObject {
		return val
	}
	return nil
}

// objects returns the objects among some values.
func objects(values iter.Seq[[]byte]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for el := range values {
			if esjson.TypeOf(el) == esjson.TypeObject && !yield(el) {
				return
			}
		}
	}
}

// objectsOf returns the objects in a member that is a list.
func objectsOf(raw []byte, key string) iter.Seq[[]byte] {
	return objects(esjson.Array(esjson.Member(raw, key)))
}

func str(raw []byte, key string) string { s, _ := esjson.GetString(raw, key); return s }

func set(names string) map[string]bool { return api.SetOf(strings.Fields(names)) }

// Piece is a part of a text: a term of a query, or what is between terms.
type Piece struct {
	Text string
	Hit  bool
}

// Marked splits a text at the terms of a query, which are in lower case; of two at one place the longer one counts.
func Marked(text string, terms []string) (out []Piece) {
	var low []byte
	var places []int // in the text, of each byte of low: the lower case of a letter may be longer or shorter
	for i, r := range text {
		low = utf8.AppendRune(low, unicode.ToLower(r))
		for len(places) < len(low) {
			places = append(places, i)
		}
	}
	places = append(places, len(text))
	for from := 0; from < len(low); {
		at, size := len(low), 0
		for _, term := range terms {
			if i := bytes.Index(low[from:], []byte(term)); i >= 0 && term != "" && (from+i < at || from+i == at && len(term) > size) {
				at, size = from+i, len(term)
			}
		}
		if at > from {
			out = append(out, Piece{Text: text[places[from]:places[at]]})
		}
		if size > 0 {
			out = append(out, Piece{text[places[at]:places[at+size]], true})
		}
		from = at + size
	}
	return out
}

// Cut returns the beginning of s, at most n bytes, without half a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Count writes a number of tokens for people, truncated and not rounded: 950, 1.2k, 34k, 1.2M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000:
		return fmt.Sprintf("%d.%dk", n/1000, n%1000/100)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%d.%dM", n/1_000_000, n%1_000_000/100_000)
}

// lineEnds replaces all line breaks by newlines, also single carriage returns: progress bars print many of these, and a
// terminal would overwrite the line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func unixEnds(text string) string { return lineEnds.Replace(text) }

func joinWords(a, b string) string { return strings.TrimSpace(a + " " + b) }

// blocksOf returns the blocks of a message; a message whose content is a string has one block.
func blocksOf(raw []byte) iter.Seq[[]byte] {
	if !isObject(raw) {
		return objects(esjson.Array(nil))
	}
	return objects(esjson.Blocks(esjson.Member(raw, "content")))
}

// plainText returns the text blocks of a message, joined.
func plainText(raw []byte) string {
	var out []string
	for block := range blocksOf(raw) {
		if text := str(block, "text"); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n\n")
}

// ResultText returns the text of a tool_result block, and the number of its images.
func ResultText(block []byte) (text string, images int) {
	content, _ := esjson.Get(block, "content")
	if s, err := esjson.Unquote(content); err == nil {
		return s, 0
	}
	var texts []string
	for _, b := range contextwindow.ResultParts(content) {
		if str(b, "type") == "text" {
			texts = append(texts, str(b, "text"))
		} else {
			images++
		}
	}
	return strings.Join(texts, "\n"), images
}

// imageOf returns the media type and the data of an image or document block, or its address, in Anthropic's or
// Cline's form.
func imageOf(block []byte) (media, data, url string) {
	if data = str(block, "data"); data != "" {
		return str(block, "mediaType"), data, ""
	}
	source := inner(block, "source")
	return str(source, "media_type"), str(source, "data"), str(source, "url")
}

func dataURL(block []byte) string {
	media, data, url := imageOf(block)
	if data != "" {
		return fmt.Sprintf("data:%s;base64,%s", media, data)
	}
	return url
}

// picture describes an image: its kind, and its size if the address holds the bytes.
func picture(address string) string {
	head, data, ok := strings.Cut(address, ",")
	if !ok || !strings.HasPrefix(head, "data:") {
		return Cut(address, 100) // a path or a link
	}
	return encoded(strings.TrimPrefix(head, "data:"), data)
}

// encoded describes a picture by its media type and base64 text.
func encoded(media, data string) string {
	media, _, _ = strings.Cut(media, ";")
	media = strings.TrimPrefix(media, "image/")
	n := int64(len(strings.TrimRight(data, "="))) * 3 / 4
	return strings.TrimSpace(Cut(media, 40) + " " + api.SizeText(n))
}

// pictures describes a row's images.
func pictures(addresses []string) (out []string) {
	for _, a := range addresses {
		out = append(out, picture(cmp.Or(a, "not an image")))
	}
	return out
}

// blockPicture describes an image or document block.
func blockPicture(block []byte) string {
	media, data, url := imageOf(block)
	if data != "" {
		return encoded(media, data)
	}
	return strings.TrimSpace(Cut(media+" "+url, 100))
}

// whole returns the addresses that hold the bytes of a picture, "" for each other one; nil if none holds bytes.
func whole(addresses []string) []string {
	out, some := make([]string, len(addresses)), false
	for i, a := range addresses {
		if strings.HasPrefix(a, "data:image/") {
			out[i], some = a, true
		}
	}
	if !some {
		return nil
	}
	return out
}

// addresses returns the images of a row; "" for one that is not text.
func addresses(raw []byte) (out []string) {
	for el := range esjson.Array(esjson.Member(raw, "images")) {
		out = append(out, esjson.Text(el))
	}
	return out
}
