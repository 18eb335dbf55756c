// What a page is called comes before what stands on it, and pages to read before those of a module.
var Scorer = {
  score: function (result) {
    var named = result[6] === "title" && !result[2] || result[6] === "index";
    return result[4] + (named ? 100 : 0) + (/^(guide|research)\//.test(result[0]) ? 8 : 0);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2
};
