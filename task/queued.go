package task

import (
	"encoding/json"
	"fmt"
)

// Load gives queued words with their images, which lie in a blob when they are large. When
// they cannot be read, the words come without them and keep the blob's name, so that whoever
// uses them can say what is missing.
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
