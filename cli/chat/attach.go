package chat

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
)

// Image is a picture that is sent with the next words.
type Image struct{ Name, URL string } // a data URL

// imageTypes are the endings of the files that providers take.
var imageTypes = []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}

// imagePath returns the file that a pasted text names. A terminal pastes a dropped file as its path: bare, in quotes,
// with a "\" before each blank, or as a file:// address.
func imagePath(text string) (path string, ok bool) {
	text = strings.TrimSpace(text)
	if n := len(text); n > 1 && (text[0] == '\'' || text[0] == '"') && text[n-1] == text[0] {
		text = text[1 : n-1]
	} else {
		text = strings.ReplaceAll(text, `\ `, " ")
	}
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		text = u.Path
	}
	if rest, home := strings.CutPrefix(text, "~/"); home {
		if dir, err := os.UserHomeDir(); err == nil {
			text = filepath.Join(dir, rest)
		}
	}
	known := slices.Contains(imageTypes, strings.ToLower(filepath.Ext(text)))
	return text, known && filepath.IsAbs(text) && !strings.ContainsAny(text, "\n\r")
}

// image carries out /image: it adds a picture to the next words; without a path it drops the pictures that wait.
func (s *Session) image(_ context.Context, _, rest string) error {
	if rest == "" {
		n := 0
		s.locked(func() { n, s.images = len(s.images), nil })
		if n == 0 {
			return errors.New("want /image PATH; no image waits for your next words")
		}
		s.tell("no image goes along with your next words")
		return nil
	}
	if path, ok := imagePath(rest); ok {
		rest = path
	}
	return s.attach(strings.Trim(rest, `"'`))
}

// attach reads a picture, which is sent with the next words.
func (s *Session) attach(path string) error {
	url, err := s.backend.Image(path)
	if err != nil {
		return err
	}
	s.change(func(*state) { s.images = append(s.images, Image{display.Safe(filepath.Base(path)), url}) })
	return nil
}

// pictures names images, in front of the words that they are sent with.
func pictures(list []Image) string {
	var out strings.Builder
	for _, i := range list {
		out.WriteString("[image: " + i.Name + "] ")
	}
	return out.String()
}

// message returns what is sent for a text of the user: the text, with the outputs and the pictures that wait.
func (s *Session) message(text string) (w api.Words, outputs, images int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Text = text
	for _, c := range s.carried {
		w.Text += "\n\n" + c.text
	}
	w.Images = api.Each(s.images, func(i Image) string { return i.URL })
	if w.Text != text || len(s.images) > 0 {
		s.brief[w.Text] = pictures(s.images) + text
	}
	return w, len(s.carried), len(s.images)
}
