package task

import (
	"encoding/json"
	"fmt"
)

// Load returns queued words with their images, which are in a blob when they are large. When it cannot read them, it
// returns the words without images and with the blob's name, so that the caller can report what is missing.
func (e InputQueued) Load(blobs Blobs) (InputQueued, error) {
	if e.ImagesBlob == "" {
		return e, nil
	}
	raw, err := blobs.Range(e.ImagesBlob, 0, -1)
	var images []string
	if err == nil {
		err = json.Unmarshal(raw, &images)
	}
	if err != nil {
		return e, fmt.Errorf("images of input %s, in blob %s: %w", e.Input, e.ImagesBlob, err)
	}
	e.Images, e.ImagesBlob, e.ImageCount = images, "", 0
	return e, nil
}

// LoadInput is InputQueued.Load for words of this state's queue.
func (s *State) LoadInput(e InputQueued) (InputQueued, error) { return e.Load(s.blobs) }
