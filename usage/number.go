package usage

import (
	"strconv"

	"github.com/roost-dev/roost/esjson"
)

// numberOf is the value of a raw JSON number; ok is false for any other value
// and for what no double can hold.
func numberOf(raw []byte) (f float64, ok bool) {
	if esjson.TypeOf(raw) != esjson.TypeNumber {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil { // out of range: JSON.parse makes it an infinity, which would swallow every sum
		return 0, false
	}
	return f, true
}
