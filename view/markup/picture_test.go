package markup

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// One page does not grow without bound.
func TestPicturesOfAPageHaveALimit(t *testing.T) {
	t.Parallel()
	p := testSetter()
	png := "\x89PNG\r\n\x1a\n"
	one := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png+strings.Repeat("x", maxPicture-len(png))))
	shown := 0
	for range 2 * maxPictures / maxPicture {
		if _, err := p.data(one); err == nil {
			shown++
		}
	}
	if shown != maxPictures/maxPicture {
		t.Errorf("got %d pictures of %d bytes on one page, want %d", shown, maxPicture, maxPictures/maxPicture)
	}
}

// Whatever a task says is a picture, the page holds no address that it wrote itself.
func TestNoPictureIsMarkup(t *testing.T) {
	pieces := []string{"data:", "image/png", "image/svg+xml", ";base64", ",", `"`, "<", ">", " onerror=x", "iVBORw0KGgo", "R0lGODlh", "=", "'", "\n", "AAAA", "%3C", ";charset=x"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 10).Draw(t, "address"), "")
		p := testSetter()
		got, err := p.data(text)
		if (got == "") == (err == nil) {
			t.Fatalf("%q gives both or neither of picture %q and error %v", text, got, err)
		}
		if got != "" && !regexp.MustCompile(`^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$`).MatchString(got) {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}
