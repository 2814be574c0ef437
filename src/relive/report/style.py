"""Colours: safe for the colour-blind (Okabe & Ito), the same for a method everywhere."""

from __future__ import annotations

METHOD_COLOURS = {
    "none": "#999999",
    "xdg": "#8c6bb1",
    "ewc": "#0072b2",
    "online-ewc": "#56b4e9",
    "si": "#009e73",
    "lwf": "#e69f00",
    "dgr": "#f0b6d0",
    "dgr-distill": "#cc79a7",
    "rtf": "#d55e00",
    "offline": "#000000",
}
TASK_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
