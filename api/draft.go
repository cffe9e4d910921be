package api

import (
	"net/http"
	"slices"
)

// Draft is what a user has begun to write: to a task, or the first message of a new one. A draft that does not exist
// has no revision.
type Draft struct {
	Task   string       `json:"task_id"` // SOURCE:ID; "" = of a new task
	Text   string       `json:"text"`
	Images []DraftImage `json:"images"`
	Key    string       `json:"key"` // the Idempotency-Key of the request that will send it; "" = none
	// Revision follows from text, images and key: equal drafts have the same one. "" = there is no draft.
	Revision string  `json:"revision"`
	Changed  *string `json:"changed_at"`
}

// DraftImage is an image of a draft.
type DraftImage struct {
	Name  string `json:"name"`  // sha256: and 64 hexadecimal digits: how drafts and messages name it
	Media string `json:"media"` // of Pictures
	Bytes int    `json:"bytes"`
}

// Pictures are the media types of pictures that providers take and pages show. SVG is left out, because it may hold
// scripts and links.
var Pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// PictureOf returns the media type of a picture, detected from its first bytes, because a name or a type that comes with
// it is untrusted. It is "" for other bytes.
func PictureOf(data []byte) string {
	if media := http.DetectContentType(data); slices.Contains(Pictures, media) {
		return media
	}
	return ""
}

// NewDraft replaces a draft. It is refused when the draft has another revision than Base, unless the draft already
// equals it. A draft without text and images is removed.
type NewDraft struct {
	Text   string   `json:"text"`
	Images []string `json:"images,omitempty"` // data URLs, or names of images that the draft has
	Key    string   `json:"key,omitempty"`
	Base   string   `json:"base"` // the revision that this draft replaces; "" = there was no draft
}

// Completion is a word that may complete what a user typed.
type Completion struct {
	Text  string `json:"text"` // as it is inserted
	About string `json:"about"`
	// From is who defined it: builtin, global (the user), project (the workspace: its author is not trusted), or the
	// provider of a model; "" for a path, or another word without an author.
	From string `json:"from,omitempty"`
}
