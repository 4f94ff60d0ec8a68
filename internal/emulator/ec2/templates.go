package ec2

import (
	"slices"
	"strconv"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

type createTemplateIn struct {
	ClientToken        string
	LaunchTemplateName string
	VersionDescription string
	LaunchTemplateData *world.TemplateData
	Tags               []world.TagSpecification `aws:"TagSpecification"`
}

// templateOut is the answer of CreateLaunchTemplate and DeleteLaunchTemplate.
type templateOut struct {
	LaunchTemplate launchTemplate
}

// launchTemplate is a launch template without its versions, in the wire format of EC2.
type launchTemplate struct {
	LaunchTemplateId     string
	LaunchTemplateName   string
	CreateTime           time.Time
	CreatedBy            string
	DefaultVersionNumber int64
	LatestVersionNumber  int64
	Tags                 []world.Tag `aws:"TagSet"`
}

func createLaunchTemplate(c *api.Call, in *createTemplateIn) (templateOut, error) {
	if in.LaunchTemplateData == nil {
		return templateOut{}, &failure.Error{Code: "MissingParameter", Message: "The request must contain the parameter LaunchTemplateData"}
	}
	tags, err := api.Tagging(in.Tags)
	if err != nil {
		return templateOut{}, err
	}
	t := world.Template{Name: in.LaunchTemplateName, CreatedBy: c.Caller.ARN, Tags: tags["launch-template"]}
	v := world.TemplateVersion{Description: in.VersionDescription, Data: *in.LaunchTemplateData}
	if c.DryRun {
		return templateOut{}, api.DryRunError()
	}
	created, err := c.Region.LaunchTemplates.Create(c.Now, t, v, world.Idempotency{Token: in.ClientToken, Fingerprint: c.Fingerprint()})
	if err != nil {
		return templateOut{}, err
	}
	return templateOut{LaunchTemplate: templateOf(created)}, nil
}

func templateOf(t *world.Template) launchTemplate {
	return launchTemplate{
		LaunchTemplateId: t.ID, LaunchTemplateName: t.Name, CreateTime: t.CreatedAt, CreatedBy: t.CreatedBy,
		DefaultVersionNumber: 1, LatestVersionNumber: int64(len(t.Versions)), Tags: api.TagList(t.Tags),
	}
}

type describeTemplatesIn struct {
	Ids     []string     `aws:"LaunchTemplateId"`
	Names   []string     `aws:"LaunchTemplateName"`
	Filters []api.Filter `aws:"Filter"`
	api.Paged
}

type describeTemplatesOut struct {
	LaunchTemplates []launchTemplate
	NextToken       string
}

func describeLaunchTemplates(c *api.Call, in *describeTemplatesIn) (describeTemplatesOut, error) {
	all := c.Region.LaunchTemplates.All()
	for _, id := range in.Ids {
		if c.Region.LaunchTemplates.ByIDOrName(id, "") == nil {
			return describeTemplatesOut{},
				&failure.Error{Code: "InvalidLaunchTemplateId.NotFound", Message: "The specified launch template, with template ID " + id +
					", does not exist."}
		}
	}
	for _, name := range in.Names {
		if c.Region.LaunchTemplates.ByIDOrName("", name) == nil {
			return describeTemplatesOut{},
				&failure.Error{Code: "InvalidLaunchTemplateName.NotFoundException", Message: "At least one of the launch templates specified in the request does not exist."}
		}
	}
	if len(in.Ids)+len(in.Names) > 0 {
		all = slices.DeleteFunc(all, func(t *world.Template) bool {
			return !slices.Contains(in.Ids, t.ID) && !slices.Contains(in.Names, t.Name)
		})
	}
	found := make([]launchTemplate, len(all))
	tags := map[string]map[string]string{}
	for i, t := range all {
		found[i] = templateOf(t)
		tags[t.ID] = t.Tags
	}
	found, err := api.FilterItems(found, in.Filters, func(t launchTemplate) api.Filterable {
		return api.Filterable{Tags: tags[t.LaunchTemplateId], Values: map[string][]string{
			"launch-template-name": {t.LaunchTemplateName}, "create-time": {t.CreateTime.Format(timeFormat)},
		}}
	})
	if err != nil {
		return describeTemplatesOut{}, err
	}
	p, err := in.Page(200, 200)
	if err != nil {
		return describeTemplatesOut{}, err
	}
	found, next, err := api.PageOf(found, func(t launchTemplate) string { return t.LaunchTemplateId }, p)
	return describeTemplatesOut{LaunchTemplates: append([]launchTemplate{}, found...), NextToken: next}, err
}

type describeVersionsIn struct {
	LaunchTemplateId   string
	LaunchTemplateName string
	Versions           []string `aws:"LaunchTemplateVersion"`
	MinVersion         string   // ignored
	MaxVersion         string   // ignored
	api.Paged
}

type describeVersionsOut struct {
	Versions  []templateVersion `aws:"LaunchTemplateVersionSet"`
	NextToken string
}

type templateVersion struct {
	LaunchTemplateId   string
	LaunchTemplateName string
	VersionNumber      int64
	VersionDescription string
	CreateTime         time.Time
	CreatedBy          string
	DefaultVersion     bool
	LaunchTemplateData world.TemplateData
}

// describeLaunchTemplateVersions lists versions of one launch template, or of all launch templates if the request has
// neither a name nor an id.
func describeLaunchTemplateVersions(c *api.Call, in *describeVersionsIn) (describeVersionsOut, error) {
	templates := c.Region.LaunchTemplates.All()
	if in.LaunchTemplateId != "" || in.LaunchTemplateName != "" {
		t, err := c.Region.LaunchTemplates.Find(in.LaunchTemplateId, in.LaunchTemplateName)
		if err != nil {
			return describeVersionsOut{}, err
		}
		templates = []*world.Template{t}
	}
	found := []templateVersion{}
	for _, t := range templates {
		versions := t.Versions
		if len(in.Versions) > 0 {
			versions = nil // only the requested versions
		}
		for _, wanted := range in.Versions {
			v, err := t.Version(wanted)
			if err != nil {
				return describeVersionsOut{}, err
			}
			versions = append(versions, v)
		}
		for _, v := range versions {
			found = append(found, templateVersion{
				LaunchTemplateId: t.ID, LaunchTemplateName: t.Name, VersionNumber: v.Number, VersionDescription: v.Description,
				CreateTime: v.CreatedAt, CreatedBy: t.CreatedBy, DefaultVersion: v.Number == 1, LaunchTemplateData: v.Data,
			})
		}
	}
	p, err := in.Page(200, 200)
	if err != nil {
		return describeVersionsOut{}, err
	}
	found, next, err := api.PageOf(found, func(v templateVersion) string {
		return v.LaunchTemplateId + "/" + strconv.FormatInt(v.VersionNumber, 10)
	}, p)
	return describeVersionsOut{Versions: found, NextToken: next}, err
}

type deleteTemplateIn struct {
	LaunchTemplateId   string
	LaunchTemplateName string
}

func deleteLaunchTemplate(c *api.Call, in *deleteTemplateIn) (templateOut, error) {
	t, err := c.Region.LaunchTemplates.Delete(in.LaunchTemplateId, in.LaunchTemplateName)
	if err != nil {
		return templateOut{}, err
	}
	return templateOut{LaunchTemplate: templateOf(t)}, nil
}
