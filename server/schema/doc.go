// Package schema compares JSON with the shapes of Go types: Read takes a document strictly, and Document describes
// routes with their bodies and answers as OpenAPI 3.1. Both use the same members of a type, so a client that follows the
// description is understood.
//
// Limits. Objects and arrays nest 32 deep, and a problem lists 20 faults. encoding/json does not serve for reading: it
// accepts a member in any case of letters, keeps the last of two with one name, and stops at the first fault without
// its position.
package schema
