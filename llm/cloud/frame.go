package cloud

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm/wire"
)

const (
	preludeSize = 12       // length of the frame, length of its headers, checksum of both
	trailerSize = 4        // checksum of the frame
	maxFrame    = 24 << 20 // AWS's own limit

	textHeader = 7 // the only kind of headers that is used
)

// headerSizes are the lengths of the values of the other kinds; -1 = the value begins with its length.
var headerSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// frames reads AWS's event stream (application/vnd.amazon.eventstream). Each frame of Bedrock holds an event of the
// maker's API in base64. An exception becomes an event of the type error, as in the maker's API.
type frames struct {
	from io.Reader
	data []byte
}

// Next implements wire.EventReader.
func (f *frames) Next() ([]byte, error) {
	for {
		headers, payload, err := f.frame()
		if err != nil {
			return nil, err
		}
		switch headers[":message-type"] {
		case "exception":
			return failedEvent(headers[":exception-type"], esjson.TextOf(payload, "message")), nil
		case "error":
			return failedEvent(headers[":error-code"], headers[":error-message"]), nil
		}
		chunk, is := esjson.GetString(payload, "bytes")
		if !is {
			continue // a kind of frame of newer versions
		}
		event, err := base64.StdEncoding.DecodeString(chunk)
		return event, api.Failed(err, "read a chunk: %w", wire.ErrDamaged)
	}
}

// failedEvent returns an error as an event of the maker's API.
func failedEvent(code, message string) []byte {
	return esjson.ObjectOf("type", "error", "error", esjson.ObjectOf("type", code, "message", message))
}

// frame reads a frame: its text headers, and its payload, which is valid until the next call.
func (f *frames) frame() (headers map[string]string, payload []byte, err error) {
	damaged := func(what string) error { return fmt.Errorf("read a frame: %w: %s", wire.ErrDamaged, what) }
	f.data = append(f.data[:0], make([]byte, preludeSize)...)
	if _, err := io.ReadFull(f.from, f.data); err != nil {
		return nil, nil, err //nolint:wrapcheck // io.EOF is the stream's end
	}
	size, headerSize := int(binary.BigEndian.Uint32(f.data)), int(binary.BigEndian.Uint32(f.data[4:]))
	switch {
	case crc32.ChecksumIEEE(f.data[:8]) != binary.BigEndian.Uint32(f.data[8:]):
		return nil, nil, damaged("the checksum of its beginning is wrong")
	case size > maxFrame:
		return nil, nil, fmt.Errorf("read a frame: %w (%d bytes)", wire.ErrTooLarge, size)
	case headerSize > size-preludeSize-trailerSize:
		return nil, nil, damaged("it is shorter than its headers")
	}
	f.data = append(f.data, make([]byte, size-preludeSize)...)
	if _, err := io.ReadFull(f.from, f.data[preludeSize:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, err
	}
	end := size - trailerSize
	if crc32.ChecksumIEEE(f.data[:end]) != binary.BigEndian.Uint32(f.data[end:]) {
		return nil, nil, damaged("its checksum is wrong")
	}
	headers, ok := readHeaders(f.data[preludeSize : preludeSize+headerSize])
	if !ok {
		return nil, nil, damaged("its headers cannot be read")
	}
	return headers, f.data[preludeSize+headerSize : end], nil
}

// readHeaders reads the text headers.
func readHeaders(data []byte) (headers map[string]string, ok bool) {
	headers = map[string]string{}
	take := func(n int) (part []byte) {
		if ok = ok && n <= len(data); ok {
			part, data = data[:n], data[n:]
			return part
		}
		return make([]byte, min(n, 2)) // callers that read a number read 0
	}
	for ok = true; ok && len(data) > 0; {
		name := string(take(int(take(1)[0])))
		kind := int(take(1)[0])
		if kind >= len(headerSizes) {
			return nil, false
		}
		length := headerSizes[kind]
		if length < 0 {
			length = int(binary.BigEndian.Uint16(take(2)))
		}
		if value := take(length); kind == textHeader {
			headers[name] = string(value)
		}
	}
	return headers, ok
}
