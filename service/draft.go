package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/drafts"
)

// draftOf returns the name of a task's draft. The draft belongs to the task that a caller sees under the id, even
// after Roost continued that task in another place. The id "" is for the draft of a new task. Each account has drafts
// of its own.
func (s *Service) draftOf(ctx context.Context, id string) (string, error) {
	name := ""
	if id != "" {
		t, err := s.Find(ctx, id)
		if err != nil {
			return "", err
		}
		name = t.Name()
	}
	if person := accounts.Person(ctx); person != "" {
		name += drafts.Person + person
	}
	return name, nil
}

// draftShown removes the account from the name in a draft.
func draftShown(d api.Draft, err error) (api.Draft, error) {
	d.Task, _, _ = strings.Cut(d.Task, drafts.Person)
	return d, err
}

// Draft returns the text that a user has begun to write to a task; the id "" is for a new task.
func (s *Service) Draft(ctx context.Context, id string) (api.Draft, error) {
	name, err := s.draftOf(ctx, id)
	if err != nil {
		return api.Draft{}, err
	}
	return draftShown(drafts.Of(s.store).Read(ctx, name))
}

// ChangeDraft replaces the draft of a task.
func (s *Service) ChangeDraft(ctx context.Context, id string, n api.NewDraft) (api.Draft, error) {
	name, err := s.draftOf(ctx, id)
	if err != nil {
		return api.Draft{}, err
	}
	var w wrongs
	if len(n.Text) > drafts.MaxText || !utf8.ValidString(n.Text) {
		w.add("/text", "want at most %d bytes of UTF-8", drafts.MaxText)
	}
	if len(n.Key) > 255 {
		w.add("/key", "want at most 255 characters")
	}
	checkImages(n.Images, "", true, &w)
	if err := w.err(); err != nil {
		return api.Draft{}, err
	}
	d := api.Draft{Task: name, Text: n.Text, Key: n.Key}
	fresh := map[string]drafts.Image{}
	for _, image := range n.Images {
		if !drafts.IsName(image) {
			media, data, _ := imageOf(image) // checkImages accepted it
			image = drafts.Name(data)
			fresh[image] = drafts.Image{Media: media, Bytes: data}
		}
		if !slices.ContainsFunc(d.Images, func(i api.DraftImage) bool { return i.Name == image }) {
			d.Images = append(d.Images, api.DraftImage{Name: image})
		}
	}
	out, err := drafts.Of(s.store).Change(keep(ctx), d, n.Base, fresh)
	return draftShown(out, draftProblem(err, id))
}

// imageOf decodes a data URL; ok is false for any other text.
func imageOf(text string) (media string, data []byte, ok bool) {
	rest, ok := strings.CutPrefix(text, "data:")
	media, encoded, found := strings.Cut(rest, ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	return media, data, ok && found && err == nil
}

// DropDraft removes the draft of a task. If a revision is given, it removes only that revision.
func (s *Service) DropDraft(ctx context.Context, id, revision string) error {
	name, err := s.draftOf(ctx, id)
	if err != nil {
		return err
	}
	return draftProblem(drafts.Of(s.store).Remove(keep(ctx), name, revision), id)
}

// DraftImage returns an image of a task's draft: its type and its bytes.
func (s *Service) DraftImage(ctx context.Context, id, image string) (media string, raw []byte, err error) {
	name, err := s.draftOf(ctx, id)
	if err != nil {
		return "", nil, err
	}
	got, err := drafts.Of(s.store).ReadImage(ctx, name, image)
	return got.Media, got.Bytes, draftProblem(err, id)
}

func draftProblem(err error, id string) error {
	path := "/v1/draft"
	if id != "" {
		path = "/v1/tasks/" + url.PathEscape(id) + "/draft"
	}
	switch {
	case errors.Is(err, drafts.ErrMoved):
		return problem(http.StatusConflict, "draft_moved", "The draft was changed elsewhere",
			"its revision is not the one that this change was made for; nothing was replaced", "GET "+path).About(id)
	case errors.Is(err, drafts.ErrNoImage):
		return problem(http.StatusNotFound, "draft_image_not_found", "The draft has no such image", err.Error(), "GET "+path).About(id)
	}
	return err
}

// written replaces the names of draft images in words by the images. The caller calls sent once the engine has taken the
// words: sent removes their draft. A failure of sent is only logged, because the words have been taken.
func (s *Service) written(ctx context.Context, c Call, id string, words *api.Words) (sent func(), err error) {
	sent = func() {}
	if words == nil || words.Draft == "" && !slices.ContainsFunc(words.Images, drafts.IsName) {
		return sent, nil
	}
	name, err := s.draftOf(ctx, id)
	if err != nil {
		return sent, err
	}
	images := make([]string, 0, len(words.Images))
	for i, image := range words.Images {
		if drafts.IsName(image) {
			got, err := drafts.Of(s.store).ReadImage(ctx, name, image)
			if errors.Is(err, drafts.ErrNoImage) && s.taken(ctx, c, id) {
				// An earlier attempt sent the draft, and the image went with it. What these words are is not used any more.
				words.Text = cmp.Or(words.Text, image)
				continue
			}
			if errors.Is(err, drafts.ErrNoImage) {
				return sent, api.Invalid(api.Wrong{Parameter: fmt.Sprintf("/images/%d", i), Detail: err.Error()})
			}
			if err != nil {
				return sent, err
			}
			image = "data:" + got.Media + ";base64," + base64.StdEncoding.EncodeToString(got.Bytes)
		}
		images = append(images, image)
	}
	words.Images = images
	return func() {
		if words.Draft == "" {
			return
		}
		if err := drafts.Of(s.store).Remove(keep(ctx), name, words.Draft); err != nil && !errors.Is(err, drafts.ErrMoved) {
			s.opt.Log.Warn("the draft of a sent message could not be removed", "task", name, "error", err.Error())
		}
	}, nil
}

// taken reports whether an earlier attempt of a call made, or changed, the task that the call names.
func (s *Service) taken(ctx context.Context, c Call, id string) bool {
	t, err := s.FindLatest(ctx, cmp.Or(id, c.Key))
	return err == nil && t.ChangedBy(ctx, c)
}
