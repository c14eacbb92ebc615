"""The looks of all pages: light and dark, narrow and wide, and on paper."""

from __future__ import annotations

STYLE = """
:root{--ink:#1d2430;--soft:#5b6675;--line:#d8dde5;--back:#fbfbfd;--card:#fff;
--dot:#1f6feb;--good:#1a7f37;--bad:#b3261e;--limit:#b3261e;
--c0:#1f6feb;--c1:#c2410c;--c2:#0f8a6d;--c3:#8b3fc7;--c4:#b58900;--c5:#c2185b;--c6:#4a6472;--c7:#6b8e23}
@media (prefers-color-scheme:dark){:root{--ink:#e5e9f0;--soft:#9aa5b5;--line:#343c49;
--back:#14181f;--card:#1b212b;--dot:#6cb0ff;--good:#57c97a;--bad:#ff8b80;--limit:#ff8b80;
--c0:#6cb0ff;--c1:#ff9d66;--c2:#4fd1ae;--c3:#c9a0f5;--c4:#e6c34d;--c5:#ff86b0;--c6:#9db4c0;--c7:#b5d65f}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:56rem;margin:0 auto;padding:1.2rem 1rem 3rem}
h1{font-size:1.5rem;line-height:1.25;margin:.4rem 0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:0 0 .3rem;overflow-wrap:anywhere}
h3{font-size:.95rem;margin:1.1rem 0 .3rem}
h4{font-size:.8rem;margin:0 0 .2rem;color:var(--soft);font-weight:600}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;
padding:1rem;margin:1rem 0}
.about,.note,.ci,.why,.where{color:var(--soft);font-size:.88rem}
.about,.why{overflow-wrap:anywhere}.note{margin:.1rem 0 .7rem}
.verdict{border-left:.35rem solid;padding:.7rem 1rem;border-radius:.3rem;background:var(--card)}
.verdict ul{margin:.3rem 0 0;padding-left:1.2rem}
.open{border-color:var(--good)}.shut{border-color:var(--bad)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}
th{text-align:left;font-weight:600;color:var(--soft);font-size:.78rem}
td,th{padding:.3rem .5rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:middle}
td:nth-child(n+2){font-variant-numeric:tabular-nums}.ci{white-space:nowrap;font-size:.8rem}
.none{color:var(--soft)}
svg.bar{width:7.5rem;height:1rem;display:block}svg.plot{width:100%;max-width:30rem;display:block}
svg text{font-size:11px;fill:var(--soft)}
.axis,.grid{stroke:var(--line);stroke-width:1}.range{stroke:var(--dot);stroke-width:3;opacity:.45}
.range.thin{stroke-width:1.5}.dot{fill:var(--dot)}.dot.soft{fill-opacity:.65}
.limit{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:3 2}
.ideal{stroke:var(--soft);stroke-dasharray:4 4}.curve{fill:none;stroke:var(--dot);stroke-width:2}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}
.c5{--c:var(--c5)}.c6{--c:var(--c6)}.c7{--c:var(--c7)}
.curve[class*=" c"]{stroke:var(--c)}.curve.dashed{stroke-dasharray:5 4}
.band{fill:var(--c);opacity:.16}.mark{fill:var(--c)}
.plots{display:grid;
grid-template-columns:repeat(auto-fit,minmax(min(19rem,100%),1fr));gap:.4rem 1.2rem}
.plots h3{margin:.4rem 0 .1rem}.plots figure{margin:0;min-width:0}
.legend{margin:.2rem 0 .5rem;font-size:.85rem;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem}
.key{overflow-wrap:anywhere}
.key i{display:inline-block;width:1.4rem;height:0;border-top:3px solid var(--c);margin-right:.4rem;
vertical-align:middle}.key i.dashed{border-top-style:dashed}
.tiles{display:grid;
grid-template-columns:repeat(auto-fill,minmax(10.5rem,1fr));gap:.7rem;margin:1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-top:3px solid var(--c);
border-radius:.6rem;padding:.6rem .9rem .8rem;display:flex;flex-direction:column}
.tile b{display:block;font-size:1.5rem;line-height:1.3;margin:auto 0 .1rem;
font-variant-numeric:tabular-nums}
.tile .name{color:var(--soft);font-size:.78rem;font-weight:600}.tile .ci{white-space:normal;
line-height:1.35}td:first-child{min-width:8.5rem}
details{margin:.5rem 0}summary{cursor:pointer;font-size:.9rem;overflow-wrap:anywhere}
details pre{margin-top:.4rem}code{font-size:.85em;overflow-wrap:anywhere}
.turn{display:grid;grid-template-columns:1.6rem 1fr;gap:.1rem .5rem;padding:.4rem 0;
border-top:1px dashed var(--line)}.turn>span{color:var(--soft);font-size:.8rem;padding-top:.15rem}
.turn div{min-width:0}.turn pre{margin:.25rem 0}.won{color:var(--good)}.lost{color:var(--bad)}
.chip{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:0 .5rem;
font-size:.75rem;margin-left:.3rem;color:var(--soft)}
article{border-top:1px solid var(--line);padding:.7rem 0}article p{margin:.1rem 0}
.states{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.6rem;
margin:.4rem 0}
pre{margin:0;padding:.5rem;border:1px solid var(--line);border-radius:.3rem;font-size:.8rem;
white-space:pre-wrap;overflow-wrap:anywhere}
@media (max-width:34rem){.ci{white-space:normal}section{padding:.7rem}svg.bar{width:4rem}
  th{hyphens:auto}td:first-child{min-width:5.5rem}}
@media print{:root{--ink:#000;--soft:#444;--line:#bbb;--back:#fff;--card:#fff;--dot:#1f4fa0;
--good:#1a7f37;--bad:#b3261e;--limit:#b3261e;
--c0:#1f4fa0;--c1:#c2410c;--c2:#0f7a5f;--c3:#7b2fb7;--c4:#8a6a00;--c5:#b0144f;--c6:#3a5462;
--c7:#4f6b1a}body{font-size:11pt}
tr,svg,figure,.tile,.turn{break-inside:avoid}h2,h3{break-after:avoid}section{border:0;padding:0}main{max-width:none}
.plots{grid-template-columns:1fr 1fr}.wide{overflow:visible}
article details::details-content{content-visibility:visible;block-size:auto}}
"""
