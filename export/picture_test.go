package export

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/redact"
)

// The beginnings of pictures.
const (
	pngBytes  = "\x89PNG\r\n\x1a\nrest"
	jpegBytes = "\xff\xd8\xff\xe0rest"
	gifBytes  = "GIF89arest"
	webpBytes = "RIFF\x04\x00\x00\x00WEBPVP8 rest"
)

func address(media, bytes string) string {
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString([]byte(bytes))
}

var sources = regexp.MustCompile(`<img [^>]*src="([^"]*)">`)

// picturePage is the page of a task whose rows show these pictures.
func picturePage(t *testing.T, addresses ...string) string {
	t.Helper()
	list := ""
	for i, a := range addresses {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf("%q", a)
	}
	var out bytes.Buffer
	_, err := HTML(t.Context(), &out, newStorage(t, folder(`[{"ts":1,"type":"say","say":"text","text":"look","images":[`+list+`]}]`, `[]`)).open("t1"), Options{Mask: redact.New()})
	fixture.NoError(t, err)
	inert(t, out.String())
	return out.String()
}

// Pictures are in the page, as what their bytes are; nothing but pictures is.
func TestPicturesAreShown(t *testing.T) {
	for _, tt := range []struct{ address, want string }{
		{address("image/png", pngBytes), address("image/png", pngBytes)},
		{address("image/jpeg", jpegBytes), address("image/jpeg", jpegBytes)},
		{address("image/gif", gifBytes), address("image/gif", gifBytes)},
		{address("image/webp", webpBytes), address("image/webp", webpBytes)},
		{address("image/svg+xml", pngBytes), address("image/png", pngBytes)}, // it is what it is, whatever it is called
		{address("image/png", "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"), ""},
		{address("image/svg+xml", "<svg onload=alert(1)>"), ""},
		{"data:image/svg+xml,%3Csvg onload=alert(1)%3E", ""},
		{"data:image/png;base64,iVBORw0KGgo=\" onerror=\"alert(1)", ""},
		{"data:image/png;base64,@@@@", ""},
		{"data:image/png;base64,", ""},
		{"data:text/html;base64," + base64.StdEncoding.EncodeToString([]byte(pngBytes)), ""},
		{"https://evil.example/p.png", ""},
		{"javascript:alert(1)", ""},
		{address("image/webp", "RIFF\x04\x00\x00\x00WAVErest"), ""},
		{address("image/webp", "RIFF"), ""},
	} {
		page := picturePage(t, tt.address)
		got := sources.FindAllStringSubmatch(page, -1)
		switch {
		case tt.want == "" && (len(got) > 0 || !strings.Contains(page, "[image")):
			t.Errorf("%.60q is shown as %v", tt.address, got)
		case tt.want != "" && (len(got) != 1 || got[0][1] != tt.want):
			t.Errorf("%.60q is shown as %v", tt.address, got)
		}
	}
	if !strings.Contains(picturePage(t, "x"), "img-src data:;") {
		t.Error("the policy does not allow the page's own pictures, or allows others")
	}
}

// Pictures of the model's history and of results are there, too.
func TestPicturesOfTheModelsHistory(t *testing.T) {
	block := fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, base64.StdEncoding.EncodeToString([]byte(pngBytes)))
	var out bytes.Buffer
	_, err := HTML(t.Context(), &out, newStorage(t, folder(`[]`, `[{"role":"user","content":[`+block+`,{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x"},`+block+`]}]}]`)).open("t1"), Options{})
	fixture.NoError(t, err)
	if got := sources.FindAllString(out.String(), -1); len(got) != 2 {
		t.Errorf("%d pictures on the page", len(got))
	}
}

// What is too large is named with its size, and one page does not grow without bound.
func TestPicturesHaveASizeLimit(t *testing.T) {
	large := address("image/png", pngBytes+strings.Repeat("x", 4<<20))
	if page := picturePage(t, large); sources.MatchString(page) || !strings.Contains(page, "[image: png 4.2 MB (not shown: more than 4.2 MB)]") {
		t.Errorf("a large picture: %s", regexp.MustCompile(`\[image[^]]*]`).FindString(page))
	}
}
