package contextwindow

import (
	"bytes"
	"encoding/base64"
	"fmt"
	pixels "image"
	giffile "image/gif"
	jpegfile "image/jpeg"
	pngfile "image/png"
	"io"
)

// ImageLimits are a provider's limits for images. A member that is 0 is no limit; with the zero value images are not
// examined.
type ImageLimits struct {
	Count int // in one request
	Bytes int // of one image, as base64
	Total int // of all images of a request, as base64
	Side  int // pixels of an image's longer side

	// Of more than Many images none may have a side above ManySide.
	Many, ManySide int

	NoGIF bool
}

// picture is the content of an image's header.
type picture struct {
	media         string
	width, height int
}

func (p picture) side() int { return max(p.width, p.height) }

// pictureOf reads the header of an image in a raw JSON string of base64. It decodes
// no pixels and reads no further than it must: a header may claim any size.
func pictureOf(data []byte) (picture, bool) {
	body := data[1 : len(data)-1]
	start := make([]byte, 32)
	n, _ := io.ReadFull(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(body)), start) // a short header is recognised by its kind
	start = start[:n]
	var read func(io.Reader) (pixels.Config, error)
	p := picture{}
	switch {
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		p.media, read = "image/png", pngfile.DecodeConfig
	case bytes.HasPrefix(start, []byte("\xff\xd8\xff")):
		p.media, read = "image/jpeg", jpegfile.DecodeConfig
	case bytes.HasPrefix(start, []byte("GIF8")):
		p.media, read = "image/gif", giffile.DecodeConfig
	case len(start) >= 30 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP":
		return webp(start)
	default:
		return p, false
	}
	c, err := read(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(body)))
	p.width, p.height = c.Width, c.Height
	return p, err == nil && p.width > 0 && p.height > 0
}

// webp reads the first 30 bytes of such a file: lossy, lossless or extended.
func webp(b []byte) (picture, bool) {
	p := picture{media: "image/webp"}
	switch string(b[12:16]) {
	case "VP8 ":
		p.width = int(b[26]) | int(b[27]&0x3f)<<8
		p.height = int(b[28]) | int(b[29]&0x3f)<<8
	case "VP8L":
		bits := uint32(b[21]) | uint32(b[22])<<8 | uint32(b[23])<<16 | uint32(b[24])<<24
		p.width, p.height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
	case "VP8X":
		p.width = 1 + (int(b[24]) | int(b[25])<<8 | int(b[26])<<16)
		p.height = 1 + (int(b[27]) | int(b[28])<<8 | int(b[29])<<16)
	}
	return p, p.width > 0 && p.height > 0
}

// tooMuch is why one image cannot be sent, "" when it can.
func (l ImageLimits) tooMuch(p picture, size int) string {
	switch {
	case l.NoGIF && p.media == "image/gif":
		return "this provider takes no GIF"
	case l.Bytes > 0 && size > l.Bytes:
		return fmt.Sprintf("it has %d bytes, and this provider takes %d", size, l.Bytes)
	case l.Side > 0 && p.side() > l.Side:
		return fmt.Sprintf("it has %d x %d pixels, and this provider takes %d", p.width, p.height, l.Side)
	}
	return ""
}

// load is how many images there are, and how heavy they are.
type load struct {
	count, size int
	large       int // with a side above ManySide
}

func (a load) plus(b load) load {
	return load{a.count + b.count, a.size + b.size, a.large + b.large}
}

func (a load) minus(b load) load {
	return load{a.count - b.count, a.size - b.size, a.large - b.large}
}

// over reports whether the images exceed a request; only the given part of each limit (1 = all, 2 = half) is used.
func (l ImageLimits) over(a load, part int) bool {
	return l.Count > 0 && a.count > l.Count/part || l.Total > 0 && a.size > l.Total/part ||
		l.Many > 0 && a.large > 0 && a.count > l.Many/part
}
