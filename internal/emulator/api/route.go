package api

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// ReadTarget sets service, action and protocol from two headers of a JSON request: X-Amz-Target, for example
// "AmazonSSM.GetParameter", and Content-Type.
func (c *Call) ReadTarget(target, contentType string) error {
	prefix, action, _ := strings.Cut(target, ".")
	services := map[string]string{"AmazonSSM": "ssm", "AmazonSQS": "sqs", "AWSPriceListService": "pricing",
		"TrentService": "kms", "ServiceQuotasV20190624": "servicequotas", "AWSOrganizationsV20161128": "organizations"}
	c.Action, c.Protocol = action, AWSJSON11
	if strings.Contains(contentType, "json-1.0") {
		c.Protocol = AWSJSON10
	}
	svc, ok := services[prefix]
	if !ok {
		return &failure.Error{Code: "UnknownOperationException", Message: "This emulator does not serve the target " + target + "."}
	}
	c.Service = svc
	return nil
}

// ReadForm sets service, protocol, action, parameters and DryRun from the body and the URL of a query request.
func (c *Call) ReadForm(r *http.Request) error {
	c.Protocol = AWSQuery
	form, err := url.ParseQuery(string(c.Body))
	if err != nil {
		return InvalidRequest("The body of the request is not a form")
	}
	for name, values := range r.URL.Query() {
		if !strings.HasPrefix(name, "X-Amz-") {
			form[name] = values
		}
	}
	if c.Service == "" {
		c.Service = serviceOfVersion(form.Get("Version"))
	}
	if c.Service == "ec2" {
		c.Protocol = EC2Query
	}
	c.Action = form.Get("Action")
	delete(form, "Action")
	delete(form, "Version")
	c.Form = form
	if c.Query, err = ParseQuery(form); err != nil {
		return err
	}
	if d := c.Query.children["DryRun"]; d != nil && c.Service == "ec2" {
		d.used = true
		c.DryRun = d.value == "true"
	}
	if c.Action == "" {
		return &failure.Error{Code: "MissingAction", Message: "The request is missing an action or a required parameter."}
	}
	return nil
}

// serviceOfVersion returns the service with the API version; empty if the version is unknown. Only unsigned requests
// need it, because a signature has the name of the service.
func serviceOfVersion(version string) string {
	return map[string]string{"2016-11-15": "ec2", "2010-05-08": "iam", "2011-06-15": "sts", "2012-11-05": "sqs"}[version]
}

// ReadPath sets the action and its path parameters from the first route that matches the method and the path.
func (c *Call) ReadPath(method string, u *url.URL, routes []Route) error {
	c.Form = u.Query()
	parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	for i, p := range parts {
		text, err := url.PathUnescape(p)
		if err != nil {
			return InvalidRequest("The path of the request is malformed")
		}
		parts[i] = text
	}
	for _, route := range routes {
		if wildcards, ok := route.match(method, parts); ok {
			c.Action, c.Path = route.Action, wildcards
			return nil
		}
	}
	return &failure.Error{Code: "UnknownOperationException", Message: "This emulator does not serve " + method + " " + u.Path +
		" of " + c.Service + ".", Status: 404}
}

// Route maps a method and a path to an action.
type Route struct {
	Method string // "GET"
	Path   string // "clusters/*": a * stands for exactly one part of the path
	Action string // "DescribeCluster"
}

// match returns the parts of the path that match the wildcards of the route; false if the route does not match.
func (r Route) match(method string, parts []string) ([]string, bool) {
	want := strings.Split(r.Path, "/")
	if method != r.Method || len(want) != len(parts) {
		return nil, false
	}
	var wildcards []string
	for i, w := range want {
		if w == "*" {
			wildcards = append(wildcards, parts[i])
		} else if w != parts[i] {
			return nil, false
		}
	}
	return wildcards, true
}
