// Package reading reads user data as the instance would run it, judges how it starts the kubelet, and corrects it.
//
// In: userdata.Input: the AMI family, the known facts about the image and the cluster, and user data in any form.
// Out: userdata.Reading with its problems; corrected user data.
// Never: a command run, a file read or a call made; text from the user data in a problem, except names that are not
// secret.
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
		place(r)
	}
	r.Out.Problems = userdata.Ordered(r.Out.Problems)
	return r.Out
}

// Foreign reads the user's own user data alone, if nothing could be merged into it. It returns a problem of its form: a
// form of another family, a message without parts, invalid TOML. The second result reports whether there is a problem.
func Foreign(in userdata.Input) (userdata.Problem, bool) {
	in.Data = nil
	if in.Family != userdata.FamilyCustom {
		in.Image = "" // the check of the image is separate
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

// read determines the format of the data and reads it like the instance.
func read(r *userdata.Reader) {
	data := r.In.Data
	if data == nil {
		data = []byte(r.In.Own)
	}
	if len(data) > userdata.MaxBytes {
		r.Report(userdata.TooLong, userdata.Certain, userdata.NeverJoins, userdata.Spot{},
			"it has %d bytes, and EC2 takes %d", len(data), userdata.MaxBytes).
			Suggest("shorten it, or compress it with gzip, which cloud-init and nodeadm decompress", "")
	}
	if len(data) > userdata.MaxInput {
		return
	}
	plain, err := userdata.Unpack(data)
	if err != nil {
		r.Report(userdata.NotUnpackable, userdata.Certain, userdata.NeverJoins, userdata.Spot{}, "%s",
			err.Error()).Suggest("compress it again, or write it without compression", "")
		return
	}
	readForm(r, userdata.Text{Body: string(plain), At: userdata.Spot{Line: 1, Column: 1}})
}

// readForm reads a text by its form and by the operating system.
func readForm(r *userdata.Reader, t userdata.Text) {
	r.Out.Form = userdata.FormOf(t.Body)
	system := r.System()
	switch {
	case r.Out.Form == userdata.FormNothing && system == "":
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
