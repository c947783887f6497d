// VitePress's own theme, without its fonts: pages use those of the reader's machine.
import DefaultTheme from "vitepress/theme-without-fonts";
import "./style.css";

// biome-ignore lint/style/noDefaultExport: VitePress takes no other
export default DefaultTheme;
