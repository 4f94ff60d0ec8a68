// Package manifest decodes and validates the manifests of a user.
//
// In: files and folders with YAML or JSON, or a stream.
// Out: objects as the API server would store them, notes, and one error for each problem, with file and line.
// Never: a call to the API server.
package manifest
