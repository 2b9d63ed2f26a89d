"""Looks at forestvm's pages in a headless browser: check_pages.py FORESTVM MODEL ROWS OUT_FOLDER REPRODUCED.

Makes the page of a search for schedules and the report of forestvm explain; REPRODUCED is a page of bench/reproduce/run.
Checks, in light and dark, wide and narrow windows, that nothing is fetched, nothing is wider than the window, text has
contrast, and the keyboard reaches and opens everything. Leaves screenshots in OUT_FOLDER. Needs Chromium with its
driver and Selenium."""

import subprocess, sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDTHS = {"wide": 1200, "narrow": 400}
HEIGHT = 1600
LEAST_CONTRAST = 4.5  # WCAG 2.1, success criterion 1.4.3


def opened(width):
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},{HEIGHT}"):
        options.add_argument(word)
    browser = webdriver.Chrome(options=options)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False},
    )
    return browser


def luminance(color):
    """Returns the relative luminance of a color that the browser prints as rgb(r, g, b)."""
    parts = [float(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def style(browser, selector, name):
    element = browser.find_element(By.CSS_SELECTOR, selector)
    return browser.execute_script("return getComputedStyle(arguments[0])[arguments[1]]", element, name)


def check_colors(browser, back, marks):
    """Expects text and marks to stand out from the background `back`. `marks` are those of this page."""
    places = (("body", "color"), ("dt", "color"), ("a", "color"), (".chart text", "fill"), (".chart .mark", "fill"))
    for selector, name in places + ((".chart .faint", "fill"),) + marks:
        found = contrast(style(browser, selector, name), back)
        assert found >= LEAST_CONTRAST, f"{selector}: contrast {found:.2f}"


def check_width(browser, what):
    inner, outer = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert inner <= outer, f"{what}: the page is {inner} pixels wide in a window of {outer}"


def check_keyboard(browser):
    """Presses Tab through the page, and expects to reach each link, each part that opens, and each part that
    scrolls."""
    wanted = browser.find_elements(By.CSS_SELECTOR, "a, summary, [tabindex='0']")
    visible = [element for element in wanted if element.is_displayed()]
    assert len(visible) > 10, f"only {len(visible)} places for the keyboard"
    met = set()
    for _ in range(len(visible) + 1):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        met.add(browser.switch_to.active_element.id)
    missed = [element.text[:40] for element in visible if element.id not in met]
    assert not missed, f"the keyboard does not reach {missed}"
    summary = browser.find_element(By.CSS_SELECTOR, "details summary")
    browser.execute_script("arguments[0].focus()", summary)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, "details[open] :is(pre, table)").is_displayed(), "Enter opens nothing"


def check_page(page, marks, out):
    for name, width in WIDTHS.items():
        browser = opened(width)
        try:
            backs = {}
            for scheme in ("light", "dark"):
                browser.execute_cdp_cmd(
                    "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
                )
                browser.get(page.resolve().as_uri())
                backs[scheme] = style(browser, "body", "background-color")
                check_colors(browser, backs[scheme], marks)
                check_width(browser, f"{scheme}, {name}")
                browser.save_screenshot(str(out / f"{page.stem}-{scheme}-{name}.png"))
            assert luminance(backs["dark"]) < 0.05 < 0.8 < luminance(backs["light"]), backs
            fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
            assert fetched == [], fetched
            for drawing in browser.find_elements(By.CSS_SELECTOR, "svg"):
                assert drawing.get_attribute("role") == "img" and drawing.find_element(By.TAG_NAME, "title")
            check_keyboard(browser)
            assert browser.get_log("browser") == [], "the browser complains"
        finally:
            browser.quit()


def main():
    forestvm, model, rows, out, reproduced = *sys.argv[1:4], Path(sys.argv[4]), Path(sys.argv[5])
    out.mkdir(parents=True, exist_ok=True)
    page = out / "tune.html"
    words = ["tune", model, "-o", str(out / "tuned.fvm"), "--batch", "1,64", "--budget", "4s", "--report", str(page)]
    subprocess.run([forestvm, *words], check=True)
    report = out / "explain.html"
    subprocess.run([forestvm, "explain", model, rows, "-o", str(report), "--row", "17", "--row", "3"], check=True)
    dots = tuple((f".chart .c{name}", "stroke") for name in range(5))
    pages = (
        (page, ((".chart text.strong", "fill"),)),
        (report, ((".chart .line", "stroke"), *dots)),
        (reproduced, dots[:2]),
    )
    for made, marks in pages:
        check_page(made, marks, out)
        print(f"{made}: light and dark, wide and narrow: in order; screenshots beside it")


if __name__ == "__main__":
    main()
