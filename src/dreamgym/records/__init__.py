"""Records in and out: the formats that trajectories are imported from and exported to."""

from dreamgym.records.formats import FORMATS, READABLE, Format
from dreamgym.records.intake import Imported, ImportReport, import_records
from dreamgym.records.read import BadRecord, detect, read_records
from dreamgym.records.write import export_records

__all__ = [
    "FORMATS",
    "READABLE",
    "BadRecord",
    "Format",
    "ImportReport",
    "Imported",
    "detect",
    "export_records",
    "import_records",
    "read_records",
]
