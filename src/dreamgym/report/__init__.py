"""Reports: what run directories hold, as one page that needs no network and no script."""

from dreamgym.report.page import report_page
from dreamgym.report.record import RunRecord, read_run

__all__ = ["RunRecord", "read_run", "report_page"]
