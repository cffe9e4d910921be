package view

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
)

// blocksOf are the blocks of a message; one whose content is a string has one.
func blocksOf(raw []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		if esjson.TypeOf(raw) != esjson.TypeObject || !esjson.Valid(raw) {
			return
		}
		content, _ := esjson.Get(raw, "content")
		if text, err := esjson.Unquote(content); err == nil {
			var o esjson.Object
			o.String("type", "text")
			o.String("text", text)
			yield(o.Bytes())
			return
		}
		for block := range esjson.Array(content) {
			if esjson.TypeOf(block) == esjson.TypeObject && !yield(block) {
				return
			}
		}
	}
}

// plainText is the text blocks of a message.
func plainText(raw []byte) string {
	var out []string
	for block := range blocksOf(raw) {
		if text := str(block, "text"); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n\n")
}

// ResultText is the text of a tool_result block and how many images it holds.
func ResultText(block []byte) (text string, images int) {
	content, ok := esjson.Get(block, "content")
	if !ok {
		return "", 0
	}
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

// resultPictures describes the images of a tool_result block, and returns the data of those that are there.
func resultPictures(block []byte) (named, data []string) {
	content, _ := esjson.Get(block, "content")
	for _, b := range contextwindow.ResultParts(content) {
		if str(b, "type") == "image" {
			named, data = append(named, blockPicture(b)), append(data, dataURL(b))
		}
	}
	return named, whole(data)
}
func dataURL(block []byte) string {
	if data := str(block, "data"); data != "" {
		return fmt.Sprintf("data:%s;base64,%s", str(block, "mediaType"), data)
	}
	source, _ := esjson.Get(block, "source")
	if esjson.TypeOf(source) != esjson.TypeObject {
		return ""
	}
	if data := str(source, "data"); data != "" {
		return fmt.Sprintf("data:%s;base64,%s", str(source, "media_type"), data)
	}
	return str(source, "url")
}
