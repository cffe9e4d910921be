package contextwindow

import "math"

// bytesPerToken is a cautious guess for prose and code as JSON: it rather counts
// too many tokens than too few.
const bytesPerToken = 3.5

// Calibration is what a provider counted for a request of known size.
type Calibration struct {
	Bytes  int64 // bytes of the request's messages, images not counted
	Tokens int64 // input tokens the provider reported, cache included
}

// EstimateTokens guesses how many tokens so many bytes of JSON are. With a
// calibration the provider's own ratio is used, as far as it is believable
// (1 to 8 bytes a token); the zero Calibration means none. It never is less than
// 0, and not 0 for anything that has bytes.
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
