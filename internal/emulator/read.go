package emulator

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/eks"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// read parses a request. It does not authenticate the caller. With an error, it returns the fields that were parsed
// before: they determine the format of the error response.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (*api.Call, error) {
	c := &api.Call{Host: r.Host, RequestPath: r.URL.Path}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return c, &failure.Error{Code: "RequestEntityTooLarge", Message: "The request is larger than 2 MiB.", Status: 413}
		}
		return c, api.InvalidRequest("The body of the request could not be read")
	}
	c.Body = body
	c.Service, c.RegionID = scopeOf(r)
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return c, c.ReadTarget(target, r.Header.Get("Content-Type"))
	}
	switch {
	case c.Service == "eks", c.Service == "" && strings.HasPrefix(r.URL.Path, "/clusters"):
		c.Service, c.Protocol = "eks", api.RESTJSON
		return c, c.ReadPath(r.Method, r.URL, eks.Routes())
	case c.Service == api.ShiftService:
		c.Protocol = api.RESTJSON
		return c, c.ReadPath(r.Method, r.URL, eks.ShiftRoutes())
	}
	return c, c.ReadForm(r)
}
