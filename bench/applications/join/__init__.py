"""The join beside pytokenjoin (speed.py), and the results of the thesis' chapter 5 (chapter.py)."""
