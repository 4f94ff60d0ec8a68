package emulator

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// read makes a call of a request: which service and action it is for, and what
// it carries. It neither authenticates nor carries it out.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (*call, error) {
	c := &call{host: r.Host, requestPath: r.URL.Path}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return c, &world.Error{Code: "RequestEntityTooLarge", Message: "The request is larger than 2 MiB.", Status: 413}
		}
		return c, invalidRequest("The body of the request could not be read")
	}
	c.body = body
	c.service, c.regionID = scopeOf(r)
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return c, c.readTarget(target, r.Header.Get("Content-Type"))
	}
	switch {
	case c.service == "eks", c.service == "" && strings.HasPrefix(r.URL.Path, "/clusters"):
		c.service, c.protocol = "eks", restJSON
		return c, c.readPath(r.Method, r.URL, eksRoutes())
	case c.service == shiftService:
		c.protocol = restJSON
		return c, c.readPath(r.Method, r.URL, shiftRoutes())
	}
	return c, c.readForm(r)
}

// readTarget reads "AmazonSSM.GetParameter".
func (c *call) readTarget(target, contentType string) error {
	prefix, action, _ := strings.Cut(target, ".")
	known := map[string]string{"AmazonSSM": "ssm", "AmazonSQS": "sqs", "AWSPriceListService": "pricing",
		"TrentService": "kms", "ServiceQuotasV20190624": "servicequotas", "AWSOrganizationsV20161128": "organizations"}
	c.action, c.protocol = action, awsJSON11
	if strings.Contains(contentType, "json-1.0") {
		c.protocol = awsJSON10
	}
	svc, ok := known[prefix]
	if !ok {
		return &world.Error{Code: "UnknownOperationException", Message: "The target " + target + " is not one that this emulator serves."}
	}
	c.service = svc
	return nil
}

// readForm reads the parameters of a query request, from body and URL.
func (c *call) readForm(r *http.Request) error {
	c.protocol = awsQuery
	form, err := url.ParseQuery(string(c.body))
	if err != nil {
		return invalidRequest("The body of the request is not a form")
	}
	for name, values := range r.URL.Query() {
		if !strings.HasPrefix(name, "X-Amz-") {
			form[name] = values
		}
	}
	if c.service == "" {
		c.service = serviceOfVersion(form.Get("Version"))
	}
	if c.service == "ec2" {
		c.protocol = ec2Query
	}
	c.action = form.Get("Action")
	delete(form, "Action")
	delete(form, "Version")
	c.form = form
	if c.query, err = parseQuery(form); err != nil {
		return err
	}
	if d := c.query.children["DryRun"]; d != nil && c.service == "ec2" {
		d.used = true
		c.dryRun = d.value == "true"
	}
	if c.action == "" {
		return &world.Error{Code: "MissingAction", Message: "The request is missing an action or a required parameter."}
	}
	return nil
}

// serviceOfVersion returns the service of an unsigned request by its API version.
func serviceOfVersion(version string) string {
	return map[string]string{"2016-11-15": "ec2", "2010-05-08": "iam", "2011-06-15": "sts", "2012-11-05": "sqs"}[version]
}

// readPath finds, among those of the service, the action of a method and path.
func (c *call) readPath(method string, u *url.URL, routes []restRoute) error {
	c.form = u.Query()
	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	for i, p := range parts {
		text, err := url.PathUnescape(p)
		if err != nil {
			return invalidRequest("The path of the request is malformed")
		}
		parts[i] = text
	}
	for _, route := range routes {
		if wild, ok := route.match(method, parts); ok {
			c.action, c.path = route.action, wild
			return nil
		}
	}
	return &world.Error{Code: "UnknownOperationException", Message: c.service + " has no " + method + " " + u.Path + " that this emulator serves.", Status: 404}
}

// restRoute is the method and path of an action: "clusters/*/access-entries".
type restRoute struct {
	method, path, action string
}

// match returns what stands for the wildcards of the route's path.
func (r restRoute) match(method string, parts []string) ([]string, bool) {
	want := strings.Split(r.path, "/")
	if method != r.method || len(want) != len(parts) {
		return nil, false
	}
	var wild []string
	for i, w := range want {
		if w == "*" {
			wild = append(wild, parts[i])
		} else if w != parts[i] {
			return nil, false
		}
	}
	return wild, true
}
