package api_test

import (
	"testing"

	"github.com/roost-dev/roost/api"
)

// The first bytes decide, and what may hold scripts or links is no picture.
func TestPictureOf(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"\x89PNG\r\n\x1a\n rest": "image/png", "\xff\xd8\xff\xe0": "image/jpeg", "GIF89a": "image/gif",
		"RIFF\x00\x00\x00\x00WEBPVP8 ": "image/webp", "": "", "words": "", "BM": "", "%PDF-1.7": "",
		`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`: "",
		`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`:          "",
	} {
		if got := api.PictureOf([]byte(data)); got != want {
			t.Errorf("%q: got %q, want %q", data, got, want)
		}
	}
}
