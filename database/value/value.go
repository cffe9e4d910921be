// Package value converts between Go values and the values in PostgreSQL's protocol: the parameters of a statement and
// the columns of its result. It knows the types in the tables of Roost, and refuses others.
//
// A parameter needs no type, because the server derives it from the statement: numbers, times and lists of them go as
// text, bytes and lists of bytes unchanged. Columns come in the binary format, with their type.
//
//	Go                                  PostgreSQL
//	string                              text, name, varchar, char, uuid
//	[]byte                              bytea, text
//	bool                                boolean
//	integers of any size                smallint, integer, bigint, oid
//	time.Time                           timestamptz, to the microsecond
//	time.Duration                       interval; a month that is read has 30 days
//	floating point numbers              double precision, numeric (parameters only)
//	a slice of these                    a list of them
//	a pointer to one of them            the same, nil is NULL
//
// A nil []byte and a nil list are NULL, too; a list that is read holds no NULL, and an interval that is read spans at
// most 146 years. Named types count as their underlying types.
//
// The library pgx converts all types of PostgreSQL. Roost does not use that part of it: it makes the program 3 MB larger.
package value

import (
	"encoding/binary"
	"time"
)

// OIDs of PostgreSQL's types, as in pg_type.
const (
	typeBool        = 16
	typeBytes       = 17
	typeChar        = 18
	typeName        = 19
	typeInt8        = 20
	typeInt2        = 21
	typeInt4        = 23
	typeText        = 25
	typeOID         = 26
	typeVarchar     = 1043
	typeTimestamptz = 1184
	typeInterval    = 1186
	typeUUID        = 2950
)

// The formats of a parameter or column.
const (
	formatText   = 0
	formatBinary = 1
)

// epoch is the time from which PostgreSQL counts microseconds.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// wire is the byte order of the protocol.
var wire = binary.BigEndian
