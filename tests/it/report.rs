//! `tandem report` and its inputs: the page is complete, agrees with the files, and works in a browser.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::skipped;

fn tandem(dir: &Path, arguments: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_tandem"))
        .args(arguments.split_whitespace())
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Sixty queries whose costs follow from their lists, so that a model can be fitted.
fn workload() -> String {
    let mut text =
        String::from("# docs: 1000000\nquery_id,mode,terms,shortest,second_shortest,postings,cpu_us,gpu_us,results\n");
    for i in 0..60_u32 {
        let postings = 100 + i * i * 300;
        let (cpu_us, gpu_us) = (90.0 + f64::from(postings) / 40.0, 700.5 + f64::from(postings) / 400.0);
        text += &format!("{i},or,2,{},{},{postings},{cpu_us},{gpu_us},10\n", 30 + i, postings - 30 - i);
    }
    text
}

/// Capacities in the format of `simulate`, for two objectives.
const CAPACITIES: &str = "\
# command: tandem simulate --workload w.workload.csv --seeds 1:3 -o r
source,policy,deadline_ms,max_rate_qps,low_qps,high_qps,bound_qps,flips,region_qps,queries,seeds,objective,confidence,failing_qps
simulated,gpu-only,50,4100,3900,4300,9000,0,9000,12000,3,p99 <= 50 ms,0.75,4400
simulated,cpu-only,50,512.5,500,520,9000,0,9000,10000,3,p99 <= 50 ms,0.75,530
simulated,stealing,50,7250,7000,7300,9000,1,9000,20000,3,p99 <= 50 ms,0.75,7400
simulated,mct,50,6100,6050,6200,9000,0,9000,20000,3,p99 <= 50 ms,0.75,6250
simulated,best-of,50,4600,4500,4650,9000,0,9000,12000,3,p99 <= 50 ms,0.75,4700
simulated,stealing,50,6000,5900,6010,9000,0,9000,20000,3,no miss of 50 ms,0.75,6100
";

/// Results of a simulation with logs and its workload, a table of unknown kind, and one that contains an attack.
fn results() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.workload.csv"), workload()).unwrap();
    let delays =
        "simulate --workload w.workload.csv --what delays --rate 200:800:3 --num-queries 400 --seeds 1:3 --log -o r";
    tandem(dir.path(), delays);
    std::fs::write(dir.path().join("r/capacity.csv"), CAPACITIES).unwrap();
    std::fs::copy(dir.path().join("w.workload.csv"), dir.path().join("r/here.workload.csv")).unwrap();
    std::fs::write(dir.path().join("r/odd.csv"), "# note: <script>alert(1)</script>\nname,\"a<b\"\n</td><b>x,1e400\n")
        .unwrap();
    std::fs::write(dir.path().join("r/notes.txt"), "not a table").unwrap();
    dir
}

fn page(dir: &Path, arguments: &str) -> String {
    tandem(dir, &format!("report {arguments} -o page.html"));
    std::fs::read_to_string(dir.join("page.html")).unwrap()
}

/// Checks that every tag is closed in order and every attribute quoted.
fn check_tags(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.split_once("<html").map(|(_, after)| after).unwrap();
    rest = rest.split_once('>').unwrap().1;
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if name == "style" || name == "script" {
            rest = rest.split_once(&format!("</{name}>")).unwrap().1;
        } else if tag.starts_with('/') {
            if name != "html" {
                assert_eq!(open.pop(), Some(name), "closed out of order near {:?}", &rest[..rest.len().min(80)]);
            }
        } else if !["meta", "link"].contains(&name) && !tag.ends_with('/') {
            open.push(name);
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "an attribute without an end: {tag}");
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn the_page_is_whole_and_asks_nothing_of_a_network() {
    let dir = results();
    let html = page(dir.path(), "r");
    check_tags(&html);
    assert!(html.starts_with("<!DOCTYPE html>"));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside} should not be in the page");
    }
    for there in ["What query rate", "How sure?", "Capacity", "Delays", "Course of runs", "Provenance"] {
        assert!(html.contains(there), "{there} should be in the page");
    }
    for there in [
        "tandem simulate --workload w.workload.csv --what delays",
        "notes.txt",
        "prefers-color-scheme: dark",
        "@media print",
    ] {
        assert!(html.contains(there), "{there} should be in the page");
    }
    // Every drawing has a name and a description, every table a caption.
    assert!(html.matches("<svg class=\"chart\"").count() >= 8);
    assert_eq!(html.matches("<svg class=\"chart\"").count(), html.matches("<desc ").count());
    assert_eq!(html.matches("<table").count(), html.matches("<caption>").count());
}

#[test]
fn delays_are_compared_at_a_rate_that_is_stable() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.workload.csv"), workload()).unwrap();
    let run = "--policy gpu-only --estimates oracle --rate 100:300:3 --num-queries 400 --seeds 1 -o r";
    tandem(dir.path(), &format!("simulate --workload w.workload.csv --what delays {run}"));
    for (stable_qps, shown) in [("300", 300), ("299.9", 200)] {
        let columns = "source,policy,deadline_ms,max_rate_qps,objective,stable_qps";
        let row = format!("simulated,gpu-only,50,{stable_qps},p99 <= 50 ms,{stable_qps}");
        std::fs::write(dir.path().join("r/capacity.csv"), format!("{columns}\n{row}\n")).unwrap();
        let html = page(dir.path(), "r");
        assert!(html.contains(&format!("Distribution of delays, at {shown} queries per second")), "{stable_qps}");
    }
}

#[test]
fn what_files_say_stays_text() {
    let dir = results();
    let html = page(dir.path(), "r");
    assert!(!html.contains("<script>alert") && !html.contains("</td><b>x"));
    assert!(
        html.contains("&lt;script&gt;alert(1)") && html.contains("&lt;/td&gt;&lt;b&gt;x") && html.contains("a&lt;b")
    );
}

#[test]
fn every_number_of_the_files_is_in_a_table() {
    let dir = results();
    let html = page(dir.path(), "r");
    for file in ["capacity.csv", "summary.csv"] {
        let text = std::fs::read_to_string(dir.path().join("r").join(file)).unwrap();
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
        for line in lines {
            for (column, cell) in columns.iter().zip(line.split(',')) {
                let shown = format!("data-v=\"{}\"", cell.replace('<', "&lt;"));
                assert!(cell.is_empty() || html.contains(&shown), "{file}: {column} {cell}");
            }
        }
    }
}

#[test]
fn what_was_driven_live_and_held_is_told_as_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("r")).unwrap();
    let told = |held_qps: &str| {
        let table = format!(
            "policy,deadline_ms,max_rate_qps,objective,live_qps,live_held,beyond_qps,beyond_held,held_qps,live_runs,live_run_s\n\
             mct,50,6100,p99 <= 50 ms,{held_qps},true,5600,false,{held_qps},4,10\n\
             stealing,50,6300,p99 <= 50 ms,,,,,,,\n"
        );
        std::fs::write(dir.path().join("r/capacity.csv"), table).unwrap();
        page(dir.path(), "r").replace("<strong>", "").replace("</strong>", "")
    };
    // A live run that kept the deadline is the answer, whatever was simulated.
    let live = told("5400");
    assert!(
        live.contains("5,400 queries per second, driven live (4 live runs of 10 s), under the policy mct."),
        "{live}"
    );
    assert!(live.contains("The simulator predicted 6,100 ("), "{live}");
    assert!(live.contains("was off by +8.93 % to +13.0 %") || live.contains("was off by"), "{live}");
    let none = told("");
    assert!(none.contains("6,300 queries per second, by simulation, under the policy stealing."), "{none}");
}

#[test]
fn several_answers_share_one_table_with_machines() {
    let dir = tempfile::tempdir().unwrap();
    for (folder, machine, deadline_ms, held_qps) in
        [("a", "box, 2 cores", 10, 5400), ("b", "box, 16 cores", 50, 81_000)]
    {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
        let table = format!(
            "# machine: {machine}\n# cpu_workers: 1\n# index_name: x/gov2\n# k: 10\n# arrivals: poisson\n\
             policy,deadline_ms,max_rate_qps,objective,beyond_qps,held_qps,answer_low_qps,answer_high_qps,\
             predicted_half_width\n\
             mct,{deadline_ms},6000,p99 <= {deadline_ms} ms,{held_qps},{held_qps},{held_qps},90000,0.2\n\
             mct,{deadline_ms},6100,no miss of {deadline_ms} ms,,,,,\n"
        );
        std::fs::write(dir.path().join(folder).join("capacity.csv"), table).unwrap();
    }
    let html = page(dir.path(), "a b");
    let answers = html.split("<section id=\"answers\">").nth(1).unwrap().split("</section>").next().unwrap();
    for there in
        ["box, 2 cores", "box, 16 cores", "p99 &lt;= 10 ms", "p99 &lt;= 50 ms", "5,400", "81,000", ">gov2<", "poisson"]
    {
        assert!(answers.contains(there), "{there}: {answers}");
    }
    assert_eq!(answers.matches("<tr>").count(), 3, "{answers}");
    assert!(!answers.contains("no miss") && answers.contains("live"), "{answers}");
    assert!(html.contains("with a 90 % interval of 5,000 to 7,200"), "{html}");
    // One answer needs no comparison.
    assert!(!page(dir.path(), "a").contains("id=\"answers\""));
}

#[test]
fn folders_stand_below_each_other_and_empty_ones_fail() {
    let dir = results();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    tandem(dir.path(), "trace --ids 50 --num-queries 60 --rate 10 -o other/t.trace.csv");
    let html = page(dir.path(), "r other");
    check_tags(&html);
    assert!(html.contains("id=\"f0\"") && html.contains("id=\"f1\"") && html.contains("t.trace.csv"));
    for (folder, expected) in
        [("empty", "contains no results"), ("w.workload.csv", "is a file"), ("nowhere", "does not exist")]
    {
        let refused = Command::new(env!("CARGO_BIN_EXE_tandem"))
            .args(["report", folder])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&refused.stderr).contains(expected), "{folder}");
    }
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|program| program.is_file())
}

/// Records errors from before anything else of the page runs.
const WATCH: &str = "<script>window.problems=[];addEventListener('error',(e)=>problems.push(e.message));\
    console.error=(...m)=>problems.push(m.join(' '));</script>";
/// Uses the page as a reader would, and stores the observations in it.
const USE: &str = r##"<script>
const seen = {};
const table = [...document.querySelectorAll("table")].find((t) => t.caption.textContent === "Capacity by policy");
const column = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent.startsWith("capacity"));
const values = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[column].dataset.v));
const button = table.tHead.rows[0].cells[column].querySelector("button");
seen.before = values();
button.click(); seen.falling = values(); seen.first = table.tHead.rows[0].cells[column].getAttribute("aria-sort");
button.click(); seen.rising = values(); seen.second = table.tHead.rows[0].cells[column].getAttribute("aria-sort");
seen.policies = [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
const tabs = document.querySelector(".tabs");
const buttons = [...tabs.querySelectorAll(".tablist button")];
seen.tabs = buttons.map((b) => b.textContent);
buttons[3].click();
seen.shown = [...tabs.querySelectorAll("figure")].map((f) => !f.hidden);
// No text of a chart is cut off or covers another, and colours are known.
seen.cut = []; seen.covered = [];
for (const svg of document.querySelectorAll("svg.chart")) {
  const frame = svg.viewBox.baseVal;
  const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent.trim(), text.getBBox()]).filter(([, box]) => box.width > 0);
  texts.forEach(([text, box], i) => {
    if (box.x < 0 || box.y < 0 || box.x + box.width > frame.width || box.y + box.height > frame.height) seen.cut.push(text);
    const covers = (other) => Math.min(box.x + box.width, other.x + other.width) - Math.max(box.x, other.x) > 0
      && Math.min(box.y + box.height, other.y + other.height) - Math.max(box.y, other.y) > 0.2 * box.height;
    texts.slice(i + 1).filter(([, other]) => covers(other)).forEach(([other]) => seen.covered.push(`${text} / ${other}`));
  });
}
seen.colours = new Set([...document.querySelectorAll("svg.chart polyline")].map((line) => getComputedStyle(line).stroke)).size;
seen.sticksOut = document.documentElement.scrollWidth > innerWidth;
seen.problems = problems;
const pre = document.createElement("pre"); pre.id = "seen"; pre.textContent = JSON.stringify(seen); document.body.append(pre);
</script>"##;

#[test]
fn a_browser_opens_the_page_sorts_its_tables_and_meets_no_error() {
    let Some(browser) = chromium() else {
        skipped::skipped("no Chromium on this machine");
        return;
    };
    let dir = results();
    let html = page(dir.path(), "r").replacen("<head>", &format!("<head>{WATCH}"), 1).replacen(
        "</body>",
        &format!("{USE}</body>"),
        1,
    );
    std::fs::write(dir.path().join("used.html"), html).unwrap();
    let url = format!("file://{}", dir.path().join("used.html").display());
    let profile = format!("--user-data-dir={}", dir.path().join("profile").display());
    let arguments =
        ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1000,900", &profile, "--dump-dom", &url];
    let opened = Command::new(browser).args(arguments).output().unwrap();
    let dom = String::from_utf8_lossy(&opened.stdout);
    let seen = dom.split_once("<pre id=\"seen\">").and_then(|(_, after)| after.split_once("</pre>"));
    let Some((seen, _)) = seen else {
        panic!("the page did not come to its end: {}", String::from_utf8_lossy(&opened.stderr))
    };
    let seen: Value =
        serde_json::from_str(&seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap();
    assert_eq!(seen["problems"], serde_json::json!([]));
    let numbers =
        |key: &str| -> Vec<f64> { seen[key].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect() };
    let (falling, rising) = (numbers("falling"), numbers("rising"));
    assert!(falling.is_sorted_by(|a, b| a >= b) && rising.is_sorted() && falling.len() >= 5, "{seen}");
    assert_eq!((seen["first"].as_str(), seen["second"].as_str()), (Some("descending"), Some("ascending")));
    let text = std::fs::read_to_string(dir.path().join("r/capacity.csv")).unwrap();
    let in_file =
        text.lines().find(|line| line.contains(&format!(",{},", seen["policies"][0].as_str().unwrap()))).unwrap();
    assert_eq!(in_file.split(',').nth(3).unwrap().parse::<f64>().unwrap(), rising[0]);
    assert_eq!(seen["tabs"], serde_json::json!(["mean", "median", "p95", "p99"]));
    assert_eq!(seen["shown"], serde_json::json!([false, false, false, true]));
    assert_eq!(seen["sticksOut"], false);
    assert_eq!([&seen["cut"], &seen["covered"]], [&serde_json::json!([]); 2]);
    assert!(seen["colours"].as_u64().unwrap() >= 6, "{seen}");
}

#[test]
fn a_browser_prints_the_page_with_all_its_tables() {
    let Some(browser) = chromium() else {
        skipped::skipped("no Chromium on this machine");
        return;
    };
    let dir = results();
    page(dir.path(), "r");
    let of = |name: &str| dir.path().join(name).display().to_string();
    let (profile, printed) = (format!("--user-data-dir={}", of("profile")), format!("--print-to-pdf={}", of("r.pdf")));
    let arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", &profile, &printed];
    let status =
        Command::new(browser).args(arguments).arg(format!("file://{}", of("page.html"))).output().unwrap().status;
    let pdf = std::fs::read(dir.path().join("r.pdf")).unwrap();
    let pages = pdf.windows(11).filter(|bytes| bytes == b"/Type /Page").count();
    assert!(status.success() && pdf.starts_with(b"%PDF-") && pages >= 3, "{pages} pages");
}

#[test]
fn a_sweep_is_drawn_along_what_varies() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.workload.csv"), workload()).unwrap();
    tandem(dir.path(), "sweep --workload w.workload.csv --policy mct,cpu-only --cpus 1,2,4 --seeds 1:2 -o s");
    let html = page(dir.path(), "s");
    check_tags(&html);
    for there in ["What is sustained at 6 points", "Capacity, by CPU workers", "a point of a sweep"] {
        assert!(html.contains(there), "{there} should be in the page");
    }
    let best = html.split("<p class=\"answer\">").nth(1).unwrap().split("</p>").next().unwrap();
    assert!(best.starts_with("At most ") && best.contains("under mct: CPU workers 4"), "{best}");
    // The captions are those of the sweep and of the files that are only listed.
    assert_eq!(html.matches("<caption>").count(), 2);
}

/// The page's question, answer, certainty and facts as text.
fn story(dir: &Path, folder: &str) -> String {
    let html = page(dir, folder);
    check_tags(&html);
    let header = html.split("<header>").nth(1).unwrap().split("</header>").next().unwrap();
    header.replace("<strong>", "").replace("</strong>", "").replace("&lt;", "<")
}

#[test]
fn facts_and_digits_are_those_of_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("r")).unwrap();
    std::fs::write(dir.path().join("r/asked.csv"), "# machine: two machines with an H100\nasked,qps\n1,2\n").unwrap();
    let runs = "policy,rate_qps,verdict,predicted_mean_ms,measured_mean_ms,measured_p99_ms,measured_p999_ms\n\
                mct,10173.4,held,1,9,55.1,80\nmct,10173.4,held,1,9,48.4,90\nmct,10682.1,missed,1,9,900,990\n";
    std::fs::write(dir.path().join("r/live_runs.csv"), runs).unwrap();
    let table = "# machine: a box, 2 cores\n# gpu: none\n\
                 policy,max_rate_qps,objective,beyond_qps,held_qps,answer_low_qps,answer_high_qps,predicted_half_width\n\
                 mct,10682.1,p99 <= 100 ms,10682.1,10173.4,9026.21,11320.6,0.189\n";
    std::fs::write(dir.path().join("r/capacity.csv"), table).unwrap();
    let told = story(dir.path(), "r");
    // Beside the rate, the largest delays of the runs that held.
    let delays = ["<dt>p99</dt><dd>55.1 ms</dd>", "<dt>p99.9</dt><dd>90 ms</dd>"];
    for there in ["a box, 2 cores", "10,000 queries per second", "simulator predicted 11,000"].into_iter().chain(delays)
    {
        assert!(told.contains(there), "{there}: {told}");
    }
    assert!(!told.contains("H100") && !told.contains("10,1"), "{told}");
}

#[test]
fn a_capacity_without_an_answer_says_so_under_its_question() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("r")).unwrap();
    std::fs::write(dir.path().join("r/here.workload.csv"), workload()).unwrap();
    let head = "# objective: p99 <= 100 ms\n# answer: no answer: no rate held, down to 310 q/s\n";
    let runs = "policy,rate_qps,verdict,predicted_mean_ms,measured_mean_ms\nmct,310,missed,1,900\n";
    std::fs::write(dir.path().join("r/live_runs.csv"), format!("{head}{runs}")).unwrap();
    let told = story(dir.path(), "r");
    assert!(told.contains("What query rate can be sustained so that 99 % of the queries are answered within 100 ms?"));
    assert!(told.contains("no answer: no rate held, down to 310 q/s"), "{told}");
}

#[test]
fn simulations_sweeps_and_plans_have_answer_and_warnings() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.csv"), workload()).unwrap();
    std::fs::write(dir.path().join("types.csv"), "name,cores,gpus,memory_gb,price_per_hour\nbox,9,0,64,0.4\n").unwrap();
    let own = "--workload w.csv --gpus 0 --cpus 16 --policy cpu-only --seeds 1:2";
    tandem(dir.path(), &format!("simulate {own} --replicas 3 --what capacity -o simulated"));
    let told = story(dir.path(), "simulated");
    for there in [
        "<dt>Machine</dt><dd>16 CPU workers",
        "3 such machines: 1 x 3, least-outstanding",
        "EXTRAPOLATED to 16 CPU workers",
    ] {
        assert!(told.contains(there), "{there}: {told}");
    }
    tandem(dir.path(), &format!("sweep {own} --rate 3000 --replicas 1:4 -o swept"));
    let told = story(dir.path(), "swept");
    for there in
        ["How many machines meet p99 <= 50 ms and p99.9 <= 500 ms at 3,000 queries", "EXTRAPOLATED to 16 CPU workers"]
    {
        assert!(told.contains(there), "{there}: {told}");
    }
    let printed = tandem(dir.path(), &format!("sweep {own} --rate 3000 --replicas 1:4 -o swept")).stdout;
    let printed = String::from_utf8(printed).unwrap();
    let fewest = printed.split(" q/s: ").nth(1).unwrap().split(',').next().unwrap();
    assert!(told.contains(&format!("<p class=\"answer\">{fewest} machine")), "{fewest}: {told}");
    assert!(page(dir.path(), "swept").contains("p99 of delays, by replicas"));
    tandem(dir.path(), "plan --workload w.csv --rate 3000 --policy cpu-only --catalogue types.csv -o planned");
    let told = story(dir.path(), "planned");
    assert!(told.contains("Which machines serve 3,000 queries per second within 50 ms at the least cost?"), "{told}");
    assert!(told.contains("box under cpu-only: ") && told.contains(" per month"), "{told}");
}

#[test]
fn a_rate_that_one_seed_missed_is_not_without_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("r")).unwrap();
    let head = "source,policy,rate_qps,seed,queries,mean_ms,p50_ms,p95_ms,p99_ms,max_ms,missed,shed,unfinished";
    let rows = [
        "100,1,1,0,0,0",
        "100,2,3,0,0,0",
        "100,3,2,0,0,0",
        "200,1,4,0,0,0",
        "200,2,5,1,0,0",
        "300,1,6,0,7,0",
        "300,2,6,0,0,0",
    ];
    let row = |row: &&str| {
        let [rate, seed, ms, missed, shed, unfinished] = row.split(',').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        format!("simulated,mct,{rate},{seed},1000,{ms},{ms},{ms},{ms},{ms},{missed},{shed},{unfinished}\n")
    };
    let text: String = rows.iter().map(row).collect();
    std::fs::write(dir.path().join("r/summary.csv"), format!("{head}\n{text}")).unwrap();
    let html = page(dir.path(), "r");
    let best = html.split("<p class=\"answer\">").nth(1).unwrap().split("</p>").next().unwrap();
    // Seeds of 1, 2 and 3 ms: the one in the middle is 2, the longest wait 3.
    assert!(best.starts_with("At <strong>100</strong> queries per second <strong>mct</strong>"), "{best}");
    assert!(best.contains("within 2 ms") && best.contains("all of them within 3 ms"), "{best}");
}

#[test]
fn unread_rows_are_told_at_the_top_with_their_place() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("r")).unwrap();
    let table = "policy,deadline_ms,max_rate_qps,low_qps,objective\n\
                 mct,50,6100,x,p99 <= 50 ms\n\
                 stealing,50,NaN,7000,p99 <= 50 ms\n\
                 best-of,50,4600,4500,p99 <= 50 ms\n\
                 cpu-only,50,51";
    std::fs::write(dir.path().join("r/capacity.csv"), table).unwrap();
    std::fs::write(dir.path().join("r/summary.csv"), "policy,rate_qps,mean_ms,p99_ms\nmct,1\n").unwrap();
    let output = tandem(dir.path(), "report r -o page.html");
    let html = std::fs::read_to_string(dir.path().join("page.html")).unwrap();
    check_tags(&html);
    let sure = html.split("<ul class=\"sure\">").nth(1).unwrap().split("</ul>").next().unwrap();
    let told = [
        "summary.csv:2: 2 values, expected 4",
        "capacity.csv:5: 3 values, expected 5: the row is left out",
        "capacity.csv:2: `low_qps` is &quot;x&quot;, expected a number: it is ignored",
        "capacity.csv:3: `max_rate_qps` is &quot;NaN&quot;, expected a number: the row is useless",
    ];
    let first = format!("<li>Could not be read: {}", told[0]);
    assert!(sure.starts_with(&first), "{sure}");
    for why in told {
        assert!(sure.contains(&format!("Could not be read: {why}.")), "{why}: {sure}");
    }
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("warning: r/capacity.csv:3: `max_rate_qps` is \"NaN\""), "{err}");
    // The answer uses the files that could be read.
    assert!(
        html.contains(
            "<strong>6,100</strong> queries per second, by simulation, under the policy <strong>mct</strong>"
        )
    );
    assert!(html.contains("data-v=\"4600\""));
}

#[test]
fn both_sides_warnings_and_queries_without_an_answer_are_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("r")).unwrap();
    let table = "# warning: backlogs disagree: on the cpu queries cost 1 to 3 times what they do alone\n# k: 10\n# cpu_workers: 1\n\
                 policy,deadline_ms,max_rate_qps,objective,live_qps,live_queries,live_late,live_held,beyond_qps,beyond_held,held_qps,\
                 answer_low_qps,answer_high_qps\n\
                 mct,50,6100,p99 <= 50 ms,6000,61000,12,true,6300,false,6000,5500,6500\n";
    std::fs::write(dir.path().join("r/capacity.csv"), table).unwrap();
    let runs = "source,policy,rate_qps,mean_ms,p99_ms,unfinished,unreleased\n\
                live,mct,6100,1,2,0,0\nlive,mct,9000,1,2,70,1230\n";
    std::fs::write(dir.path().join("r/summary.csv"), runs).unwrap();
    let told = page(dir.path(), "r").replace("<strong>", "").replace("</strong>", "");
    for there in [
        "6,000 queries per second, driven live, under the policy mct.",
        "The 90 % interval of this rate is 5,500 to 6,500",
        "<li>Warning: backlogs disagree: on the cpu queries cost 1 to 3 times what they do alone.</li>",
        "In 1 of 2 live runs 1,300 queries were not answered",
        "Most live runs at 6,000 queries per second met the objective; in all of them together 12 of 61,000 queries were late.",
        "Most live runs at 6,300 queries per second missed the objective.",
        "CPU workers",
        "Results per query",
    ] {
        assert!(told.contains(there), "{there}: {told}");
    }
}

#[test]
fn stale_pages_are_refused_until_rendered() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("docs/deep")).unwrap();
    std::fs::write(dir.path().join("capacity.csv"), CAPACITIES).unwrap();
    let marker = "<!-- table capacity.csv; where: policy = mct; columns: policy, max_rate_qps \"q/s\" -->";
    let path = dir.path().join("docs/deep/page.md");
    std::fs::write(&path, format!("# Page\n\n{marker}\n<!-- end -->\n")).unwrap();
    let check = || {
        let arguments = ["report", "--docs", "--check"];
        Command::new(env!("CARGO_BIN_EXE_tandem")).args(arguments).current_dir(dir.path()).output().unwrap()
    };
    let refused = check();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("docs/deep/page.md"), "{refused:?}");
    tandem(dir.path(), "report --docs");
    assert!(check().status.success());
    let rendered = std::fs::read_to_string(&path).unwrap();
    assert!(rendered.contains("| mct | 6,100 |") && rendered.contains("(../../capacity.csv)"), "{rendered}");
    std::fs::write(&path, rendered.replace("6,100", "6,200")).unwrap();
    assert_eq!(check().status.code(), Some(2));
}
