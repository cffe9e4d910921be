package view

import (
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// picture describes an image: its kind, and its size if the bytes are there.
func picture(address string) string {
	head, data, ok := strings.Cut(address, ",")
	if !ok || !strings.HasPrefix(head, "data:") {
		return short(address, 100) // a path or a link
	}
	return encoded(strings.TrimPrefix(head, "data:"), data)
}

// encoded is a picture whose base64 text is there.
func encoded(media, data string) string {
	media, _, _ = strings.Cut(media, ";")
	media = strings.TrimPrefix(media, "image/")
	n := int64(len(strings.TrimRight(data, "="))) * 3 / 4
	return strings.TrimSpace(short(media, 40) + " " + Bytes(n))
}

// Bytes writes a size for people, cut and not rounded: 950 B, 34 KB, 1.2 MB.
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%d KB", n/1000)
	}
	return fmt.Sprintf("%d.%d MB", n/1_000_000, n%1_000_000/100_000)
}

// pictures describes a row's images.
func pictures(raw []byte) []string {
	list, _ := esjson.Get(raw, "images")
	var out []string
	for el := range esjson.Array(list) {
		if s, err := esjson.Unquote(el); err == nil {
			out = append(out, picture(s))
		} else {
			out = append(out, "not an image")
		}
	}
	return out
}

// blockPicture describes an image or document block, Anthropic's or Cline's.
func blockPicture(block []byte) string {
	if data := str(block, "data"); data != "" {
		return encoded(str(block, "mediaType"), data)
	}
	source, ok := esjson.Get(block, "source")
	if !ok || esjson.TypeOf(source) != esjson.TypeObject {
		return "" // it has no description
	}
	if data := str(source, "data"); data != "" {
		return encoded(str(source, "media_type"), data)
	}
	return strings.TrimSpace(short(str(source, "media_type")+" "+str(source, "url"), 100))
}

// whole are the addresses that hold the bytes of a picture; nil when none does.
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

// placeholder represents the images of an item in its first line.
func placeholder(it Item) string {
	if it.Images == 0 {
		return ""
	}
	const most = 4
	var known []string
	for _, p := range it.Pictures {
		if p != "" {
			known = append(known, p)
		}
	}
	text := fmt.Sprintf("%d image%s", it.Images, plural(it.Images))
	if len(known) > most {
		known = append(known[:most], fmt.Sprintf("and %d more", len(known)-most))
	}
	if len(known) > 0 {
		text += ": " + strings.Join(known, ", ")
	}
	return " [" + text + "]"
}

// addresses are the images of a row; "" for one that is not text.
func addresses(raw []byte) (out []string) {
	list, _ := esjson.Get(raw, "images")
	for el := range esjson.Array(list) {
		url, err := esjson.Unquote(el)
		if err != nil {
			url = ""
		}
		out = append(out, url)
	}
	return out
}
