"""Pages to read: HTML, looks and pictures in one file, without scripts and without a network.

Nothing here knows what is shown. Texts that come from outside are escaped by whoever puts them in,
except where a function says that it takes plain words.
"""

from dreamgym.page.html import details, document, note, section, table, tiles
from dreamgym.page.plot import Frame, Point, Series, curve_plot, interval_bar, legend

__all__ = [
    "Frame",
    "Point",
    "Series",
    "curve_plot",
    "details",
    "document",
    "interval_bar",
    "legend",
    "note",
    "section",
    "table",
    "tiles",
]
