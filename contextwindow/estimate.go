package contextwindow

import (
	"math"

	"github.com/roost-dev/roost/esjson"
)

// bytesPerToken is a cautious estimate for prose and code as JSON: it counts too many tokens rather than too few.
const bytesPerToken = 3.5

// Calibration is what a provider counted for a request of known size.
type Calibration struct {
	Bytes  int64 // bytes of the request's messages, without images
	Tokens int64 // input tokens that the provider reported, cache included
}

// EstimateTokens estimates how many tokens so many bytes of JSON are. With a calibration it uses the provider's own
// ratio, as far as that is plausible (1 to 8 bytes a token); the zero Calibration means none. The estimate is never
// negative, and 0 only for 0 bytes.
func EstimateTokens(bytes int64, c Calibration) int64 {
	if bytes <= 0 {
		return 0
	}
	ratio := bytesPerToken
	if c.Bytes > 0 && c.Tokens > 0 {
		ratio = min(max(float64(c.Bytes)/float64(c.Tokens), 1), 8)
	}
	return int64(math.Ceil(float64(bytes) / ratio))
}

// Weigh counts the bytes of JSON of a message or block without its images, and its images.
func Weigh(raw []byte) (bytes, images int) {
	bytes = len(raw)
	content := raw
	if esjson.TypeOf(raw) == esjson.TypeObject {
		if source, ok := esjson.Get(raw, "source"); ok && blockType(raw) == "image" {
			data, _ := esjson.Get(source, "data")
			return bytes - len(data), 1
		}
		content, _ = esjson.Get(raw, "content")
	}
	if esjson.TypeOf(content) != esjson.TypeArray {
		return bytes, 0
	}
	for b := range esjson.Array(content) {
		less, n := Weigh(b)
		bytes, images = bytes-len(b)+less, images+n
	}
	return bytes, images
}
