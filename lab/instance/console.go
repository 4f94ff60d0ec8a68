package instance

import (
	"fmt"
	"strings"
	"time"
)

// sayKernel prints the first console lines: those of the kernel and of systemd.
func (b *boot) sayKernel() {
	arch := b.Image.Architecture
	b.say(fmt.Sprintf("[    0.000000] Linux version %s.%s (mockbuild@ip-10-0-38-203) #1 SMP", b.Image.kernelVersion(), arch))
	b.say(fmt.Sprintf("[    0.000000] DMI: Amazon EC2 %s/, BIOS 1.0 10/16/2017", b.Facts.Name))
	b.say(fmt.Sprintf("[    0.213004] Memory: %dK/%dK available", b.memoryKiB(), b.Facts.MemoryMiB*1024))
	b.say(fmt.Sprintf("[    2.730115] systemd[1]: Detected architecture %s.", strings.ReplaceAll(arch, "_", "-")))
}

func (b *boot) logCloudInit(format string, args ...any) {
	b.say(fmt.Sprintf("[%12.6f] cloud-init[2211]: ", b.uptime()) + fmt.Sprintf(format, args...))
}

func (b *boot) logUnit(unit, line string) {
	b.say(fmt.Sprintf("[%12.6f] %s: %s", b.uptime(), unit, line))
}

// uptime returns the uptime in seconds, plus 9, because a boot takes longer on EC2 than in the lab.
func (b *boot) uptime() float64 { return 9 + time.Since(b.startedAt).Seconds() }

func timestamp() string { return time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05 +0000") }

// kernelVersion returns the version of the image's kernel, without the architecture.
func (i Image) kernelVersion() string {
	switch i.Family {
	case "AL2023":
		return "6.1.155-176.282.amzn2023"
	case "Bottlerocket":
		return "6.12.46"
	}
	return "5.10.245-241.976.amzn2"
}

// prettyName returns the image's name of the operating system: PRETTY_NAME in os-release.
func (i Image) prettyName() string {
	switch i.Family {
	case "AL2023":
		return "Amazon Linux 2023.9.20251110"
	case "Bottlerocket":
		return "Bottlerocket OS " + i.release() + " (" + i.variant() + ")"
	}
	return "Amazon Linux 2"
}
