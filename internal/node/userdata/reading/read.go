// Package reading reads user data as the instance would run it, judges how it starts the kubelet, and corrects it.
//
// In: a userdata.Input: the AMI family, the known facts about the image and the cluster, and user data in any form.
// Out: a userdata.Reading with its problems; corrected user data.
// Never: running a command, reading a file or calling AWS; a secret of the user data in a problem.
package reading

import (
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/bottlerocket"
	"github.com/joiner-sh/joiner/internal/node/userdata/cloudinit"
	"github.com/joiner-sh/joiner/internal/node/userdata/windows"
)

// Read reads user data. It returns a Reading for any input.
func Read(in userdata.Input) userdata.Reading {
	r := &userdata.Reader{In: in}
	r.Out.Form, r.Out.Kubelet.Config = userdata.FormUnknown, map[string]any{}
	r.Files = map[string]userdata.Text{}
	if r.JudgeImage() {
		read(r)
		judge(r)
		settleHarm(r)
		convertPositions(r)
	}
	r.Out.Problems = userdata.SortProblems(r.Out.Problems)
	return r.Out
}

// MergeProblem returns the worst problem that prevents merging Joiner's part into the user's user data, in.Own. Such a
// problem has the kind OtherFamily, BadMIME, SettingInvalid or NotUnpackable. MergeProblem returns false if there is
// none. It ignores in.Data, the merged user data.
func MergeProblem(in userdata.Input) (userdata.Problem, bool) {
	in.Data = nil
	if in.Family != userdata.FamilyCustom {
		in.Image = "" // so that JudgeImage reports no problem
	}
	for _, p := range Read(in).Problems {
		switch p.Kind {
		case userdata.OtherFamily, userdata.BadMIME, userdata.SettingInvalid, userdata.NotUnpackable:
			return p, true
		default:
		}
	}
	return userdata.Problem{}, false
}

// read unpacks the user data of the instance, or the user's own if In.Data is nil, and passes the text to readForm.
func read(r *userdata.Reader) {
	data := r.In.Data
	if data == nil {
		data = []byte(r.In.Own)
	}
	if len(data) > userdata.MaxBytes {
		r.Report(userdata.TooLong, userdata.Certain, userdata.NeverJoins, userdata.Position{},
			"it has %d bytes, and EC2 takes %d", len(data), userdata.MaxBytes).
			Suggest("shorten it, or compress it with gzip, which cloud-init and nodeadm decompress", "")
	}
	if len(data) > userdata.MaxInput {
		return
	}
	plain, err := userdata.Unpack(data)
	if err != nil {
		r.Report(userdata.NotUnpackable, userdata.Certain, userdata.NeverJoins, userdata.Position{}, "%s",
			err.Error()).Suggest("compress it again, or write it without compression", "")
		return
	}
	readForm(r, userdata.Text{Body: string(plain), At: userdata.Position{Line: 1, Column: 1}})
}

// readForm chooses the reader of a text by the operating system of the image, or by the text's form if the system is
// unknown.
func readForm(r *userdata.Reader, t userdata.Text) {
	r.Out.Form = userdata.FormOf(t.Body)
	system := r.System()
	switch {
	case r.Out.Form == userdata.FormNothing && system == "": // nothing to read
	case system == userdata.BottlerocketSystem:
		bottlerocket.Read(r, t)
	case system == userdata.WindowsSystem:
		windows.Read(r, t)
	case system == "" && r.Out.Form == userdata.FormBottlerocket:
		bottlerocket.Read(r, t)
	case system == "" && r.Out.Form == userdata.FormPowerShell:
		windows.Read(r, t)
	default:
		cloudinit.Read(r, t)
	}
}
