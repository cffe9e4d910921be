package export

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/view"
)

// Bounds on the pictures in a page, in bytes. A phone could not open a page with more.
const (
	maxPicture  = 4 << 20
	maxPictures = 32 << 20
)

// kinds are the pictures that a page shows, by their first bytes: the type in a task is untrusted. SVG is left out, as it
// may hold scripts and links.
var kinds = []struct{ media, begins, has string }{
	{"image/png", "\x89PNG\r\n\x1a\n", ""},
	{"image/jpeg", "\xff\xd8\xff", ""},
	{"image/gif", "GIF8", ""},
	{"image/webp", "RIFF", "WEBP"},
}

// pictures shows the pictures of an item, or describes them.
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

// picture is a data: address that is built from the bytes of a picture, or the reason why there is none.
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
