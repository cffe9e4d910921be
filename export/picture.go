package export

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/view"
)

// Bounds on the pictures in a page, in bytes of them. A page with more could not be
// opened on a phone.
const (
	maxPicture  = 4 << 20
	maxPictures = 32 << 20
)

// kinds are the pictures that a page shows, by how their bytes begin. What a task says
// of its pictures is not believed. SVG is none of them: it may hold scripts and links.
var kinds = []struct{ media, begins, has string }{
	{"image/png", "\x89PNG\r\n\x1a\n", ""},
	{"image/jpeg", "\xff\xd8\xff", ""},
	{"image/gif", "GIF8", ""},
	{"image/webp", "RIFF", "WEBP"},
}

// pictures shows an item's pictures, or says what they are.
func (p *page) pictures(it view.Item) {
	for n := range it.Images {
		name := "image"
		if n < len(it.Pictures) && it.Pictures[n] != "" {
			name = "image: " + it.Pictures[n]
		}
		why := ""
		if n < len(it.Data) && it.Data[n] != "" {
			var address string
			if address, why = p.picture(it.Data[n]); why == "" {
				p.print("<p><img alt=\"%s\" src=\"%s\"></p>\n", p.set.plain(name), address)
				continue
			}
			why = " (" + why + ")"
		}
		p.print("<p class=\"image\">[%s]</p>\n", p.set.plain(name+why))
	}
}

// picture is a data: address that is made anew from a picture's bytes, or why there is
// none.
func (p *page) picture(address string) (fresh, why string) {
	_, data, ok := strings.Cut(address, ";base64,")
	if !ok {
		return "", "not shown: it is not a picture that is known"
	}
	if len(data) > maxPicture*4/3+4 {
		return "", fmt.Sprintf("not shown: more than %s", view.Bytes(maxPicture))
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(data))
	if err != nil {
		return "", "not shown: it is damaged"
	}
	for _, k := range kinds {
		if !bytes.HasPrefix(raw, []byte(k.begins)) || k.has != "" && (len(raw) < 12 || string(raw[8:12]) != k.has) {
			continue
		}
		if p.shown += len(raw); p.shown > maxPictures {
			p.shown -= len(raw)
			return "", fmt.Sprintf("not shown: the page holds %s of pictures", view.Bytes(maxPictures))
		}
		return "data:" + k.media + ";base64," + base64.StdEncoding.EncodeToString(raw), ""
	}
	return "", "not shown: it is not a picture that is known"
}
