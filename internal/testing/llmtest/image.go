package llmtest

import (
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif" // for their headers
	_ "image/jpeg"
	_ "image/png"
	"strings"
)

// gallery counts the images of a request and checks them against the limits that the
// provider documents. Images whose header cannot be read count and are accepted: tests
// send three bytes for one.
type gallery struct {
	count, one, total int    // limits: how many, and bytes of base64; 0 = none
	side              int    // pixels
	many, manySide    int    // of more than many none may have a side above manySide
	refuses           string // a media type

	seen, bytes, largest int
	largestAt            string
}

// add adds an image and returns the rule that it breaks.
func (g *gallery) add(where, media, data string) string {
	g.seen++
	g.bytes += len(data)
	c, kind, err := image.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	side := max(c.Width, c.Height)
	if err == nil && side > g.largest {
		g.largest, g.largestAt = side, where
	}
	switch {
	case g.refuses != "" && media == g.refuses:
		return fmt.Sprintf("%s: Unsupported MIME type: %s", where, media)
	case g.one > 0 && len(data) > g.one:
		return fmt.Sprintf("%s: image exceeds the maximum: %d bytes > %d bytes", where, len(data), g.one)
	case err == nil && media != "image/"+kind:
		return fmt.Sprintf("%s: Image does not match the provided media type %s", where, media)
	case err == nil && g.side > 0 && side > g.side:
		return fmt.Sprintf("%s: At least one of the image dimensions exceed max allowed size: %d pixels", where, g.side)
	}
	return ""
}

// end returns the rule that the images break together.
func (g *gallery) end() string {
	switch {
	case g.count > 0 && g.seen > g.count:
		return fmt.Sprintf("Too many images: %d, at most %d", g.seen, g.count)
	case g.total > 0 && g.bytes > g.total:
		return fmt.Sprintf("Request too large: %d bytes of images", g.bytes)
	case g.many > 0 && g.seen > g.many && g.largest > g.manySide:
		return fmt.Sprintf("%s: At least one of the image dimensions exceed max allowed size for many-image requests: %d pixels", g.largestAt, g.manySide)
	}
	return ""
}
