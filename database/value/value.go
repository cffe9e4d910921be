// Package value converts between Go values and what PostgreSQL's protocol carries: the parameters of a statement and the
// columns of its result. It knows the types that the tables of Roost have, and refuses others.
//
// A parameter needs no type, because the server derives it from the statement: numbers, times and lists of them go as
// text, bytes and lists of bytes as they are. Columns come in the binary format, and with their type.
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
// A nil []byte and a nil list are NULL, too; a list that is read has no NULL in it. An interval that is read has up to 146
// years. Named types are treated as the types that they are made of.
//
// The library pgx converts all types of PostgreSQL. Roost does not use that part of it: it makes the program 3 MB larger.
package value

import (
	"encoding/binary"
	"time"
)

// Types of PostgreSQL by their numbers (OIDs), as pg_type has them.
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

// epoch is what PostgreSQL counts microseconds from.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// wire is the byte order of the protocol.
var wire = binary.BigEndian
