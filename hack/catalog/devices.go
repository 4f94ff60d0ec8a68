package main

import (
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// gpuNames maps the trade names in the records to EC2's names.
var gpuNames = map[string]string{
	"NVIDIA GRID K520":       "K520",
	"NVIDIA T4 Tensor Core":  "T4",
	"NVIDIA T4G Tensor Core": "T4g",
	"NVIDIA Tesla K80":       "K80",
	"NVIDIA Tesla M60":       "M60",
	"NVIDIA Tesla V100":      "V100",
}

// gpuMemory is the usable memory of one GPU in MiB, by EC2's name, if the records have the installed memory instead.
// Source: instance types reference of karpenter.sh, generated from the API.
var gpuMemory = map[string]int64{"A10G": 22888, "L4": 22888, "L40S": 45776}

// neurons maps the families with Inferentia or Trainium devices to the facts of one device. The records have the number
// of devices in the field GPU. Source: EC2 Instance Types guide, "Accelerated computing".
var neurons = map[string]catalog.Neuron{
	"inf1":  {Name: "Inferentia", Cores: 4, CoreVersion: 1, MemoryMiB: 8192},
	"inf2":  {Name: "Inferentia2", Cores: 2, CoreVersion: 2, MemoryMiB: 32768},
	"trn1":  {Name: "Trainium", Cores: 2, CoreVersion: 2, MemoryMiB: 32768},
	"trn1n": {Name: "Trainium", Cores: 2, CoreVersion: 2, MemoryMiB: 32768},
}

// setDevices sets the accelerators of f from a record: Neuron devices, GPUs or FPGAs.
func setDevices(f *catalog.Facts, r record) {
	family, _, _ := strings.Cut(r.Name, ".")
	if n, ok := neurons[family]; ok {
		n.Count = r.GPUs
		f.Neuron = []catalog.Neuron{n}
		return
	}
	switch {
	case family == "dl1":
		f.GPUs = []catalog.Accelerator{{Name: "Gaudi HL-205", Manufacturer: "Habana", Count: 8, MemoryMiB: 32768}}
	case r.GPUs > 0 && r.GPUModel != "":
		f.GPUs = []catalog.Accelerator{gpu(r)}
	case r.FPGAs > 0:
		f.FPGAs = []catalog.Accelerator{{Count: r.FPGAs}}
		f.Unknown = append(f.Unknown, catalog.UnknownAccelerator)
	}
}

// gpu returns the GPUs of a record: their number, and the memory of each.
func gpu(r record) catalog.Accelerator {
	maker, model, _ := strings.Cut(r.GPUModel, " ")
	a := catalog.Accelerator{Name: model, Manufacturer: maker, Count: r.GPUs, MemoryMiB: r.GPUMemory * 1024 / r.GPUs}
	if name, ok := gpuNames[r.GPUModel]; ok {
		a.Name = name
	}
	if usable, ok := gpuMemory[a.Name]; ok {
		a.MemoryMiB = usable
	}
	return a
}
